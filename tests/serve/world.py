"""A server in a network of its own, where names and addresses are what a test says.

World is a Server in new network and mount namespaces: nothing but a loopback that has public and
private addresses alike, an /etc/hosts and one trusted authority. What is sent there goes nowhere
else. Its Sites listen on every address, so whatever should have been refused and was not is seen.
"""

import contextlib
import json
import os
import socket
import ssl
import subprocess
import sys
from pathlib import Path

from support.server import Server
from support.web import Site, response

PUBLIC, PUBLIC6 = "11.22.33.44", "2600:1::1"
PRIVATE, METADATA = "10.1.2.3", "169.254.169.254"
HOSTS = f"""
127.0.0.1 localhost inside.example
::1 localhost
{PUBLIC} files.example pypi.example other.example x.below.example both.example unnamed.example
{PUBLIC6} six.example
{PRIVATE} private.example both.example
{METADATA} metadata.example
"""
NAMES = sorted({word for word in HOSTS.split() if word != "unnamed.example"})
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"


class Place(Site):
    def put(self, path, answer):
        """answer: a body, a whole response, or a function."""
        whole = callable(answer) or answer.startswith(b"HTTP/")
        super().put(path, answer if whole else response(200, answer))


class World(Server):
    """site, tls_site and odd listen on ports 80, 443 and 8080; ca is the certificate of tls_site."""

    def __init__(self, *flags, config=""):
        super().__init__(*flags, config=config, listen="unix:")
        self.listen = f"unix:{self.files}/socket"
        self.ca, self.sites = make_certificate(self.files), []

    def launch(self):
        self.close_sites()
        (self.files / "hosts").write_text(HOSTS)
        here, there = socket.socketpair()
        uid, gid = os.getuid(), os.getgid()
        plan = {"fd": there.fileno(), "ports": [80, 443, 8080],
                "addresses": [PUBLIC + "/32", PRIVATE + "/32", METADATA + "/32", PUBLIC6 + "/128"],
                "mounts": {"/etc/hosts": str(self.files / "hosts"), AUTHORITIES: str(self.ca)},
                "command": self.command() if uid == 0 else
                ["unshare", "--user", f"--map-user={uid}", f"--map-group={gid}", *self.command()]}
        with here, open(self.files / "log", "ab") as log:
            self.process = subprocess.Popen(
                ["unshare", "--net", "--mount", *([] if uid == 0 else ["--map-root-user"]),
                 sys.executable, Path(__file__).with_name("enter_world.py"), json.dumps(plan)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env,
                start_new_session=True, pass_fds=[there.fileno()])
            there.close()
            fds = socket.recv_fds(here, 1, 3)[1]
        assert len(fds) == 3, self.log()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(self.ca, self.files / "key.pem")
        self.sites = [Place(socket.socket(fileno=fd), tls if i == 1 else None)
                      for i, fd in enumerate(fds)]
        self.site, self.tls_site, self.odd = self.sites

    def close_sites(self):
        for site in self.sites:
            site.close()
        self.sites = []

    def discard(self):
        self.close_sites()
        super().discard()

    @contextlib.contextmanager
    def unasked(self):
        """Of what happens in here no site hears."""
        before = [len(site.heads) for site in self.sites]
        yield
        assert [len(site.heads) for site in self.sites] == before, [site.heads[-1:] for site in self.sites]

    def lines(self, word):
        """What the log says with this word in it, without what stands before it."""
        text = (self.files / "log").read_text(errors="replace")
        return [line[line.index(word):] for line in text.splitlines() if word in line]


def make_certificate(folder):
    """One that is its own authority, for every name and address of the world."""
    ca, names = folder / "ca.pem", []
    for name in NAMES:
        names.append(("IP:" if name[0].isdigit() or ":" in name else "DNS:") + name)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "2", "-subj", "/CN=world", "-addext", "subjectAltName=" + ",".join(names),
                    "-keyout", folder / "key.pem", "-out", ca], check=True, capture_output=True)
    return ca
