"""An authority that signs certificates, made with openssl."""

import subprocess


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


class Authority:
    """Signs what it is asked to, in a folder of its own."""

    def __init__(self, place, name):
        self.place, self.cert, self.key = place, place / f"{name}.pem", place / f"{name}.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-days", "2", "-subj", f"/CN={name}", "-keyout", self.key, "-out", self.cert)
        (place / f"{name}.index").write_text("")
        (place / f"{name}.conf").write_text(
            f"[ca]\ndefault_ca=c\n[c]\ndatabase={place}/{name}.index\nnew_certs_dir={place}\n"
            "rand_serial=yes\ndefault_md=sha256\nunique_subject=no\npolicy=p\n[p]\n"
            "commonName=supplied\norganizationName=optional\n")
        self.conf = place / f"{name}.conf"

    def sign(self, name, subject, purpose="clientAuth", begin="20200101000000Z", end="20990101000000Z", names=None):
        """The files of a certificate of ours and of its key. names: as in "IP:127.0.0.1"."""
        cert, key, request = (self.place / f"{name}.{kind}" for kind in ("crt", "key", "csr"))
        extensions = self.place / f"{name}.ext"
        extensions.write_text("basicConstraints=CA:FALSE\n"
                              + (f"extendedKeyUsage={purpose}\n" if purpose else "")
                              + (f"subjectAltName={names}\n" if names else ""))
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-subj", subject, "-keyout", key, "-out", request)
        openssl("ca", "-batch", "-notext", "-preserveDN", "-config", self.conf, "-cert", self.cert,
                "-keyfile", self.key, "-in", request, "-out", cert, "-extfile", extensions,
                "-startdate", begin, "-enddate", end)
        return cert, key
