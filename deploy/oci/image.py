#!/usr/bin/env python3
"""image.py TREE LAYOUT VERSION UID: an OCI layout of one layer, with a list of contents beside it.

The same tree makes the same bytes: names are sorted, times are SOURCE_DATE_EPOCH's or 0, nothing depends on who
packs it. The list is SPDX 2.3: Debian's packages, each file of ours with its hash, and every other file by the
package that has it. It is an artifact of the layout that refers to the image, as registries keep such lists.
"""

import gzip
import hashlib
import json
import os
import subprocess
import sys
import tarfile
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import quote

EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
TIME = datetime.fromtimestamp(EPOCH, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
INDEX, MANIFEST = "application/vnd.oci.image.index.v1+json", "application/vnd.oci.image.manifest.v1+json"
SPDX = "application/spdx+json"
OURS = ("usr/bin/retort", "usr/lib/retort/")


def put(layout, data, media_type, **more):
    """One blob; its descriptor."""
    digest = hashlib.sha256(data).hexdigest()
    (layout / "blobs/sha256" / digest).write_bytes(data)
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data), **more}


def document(value):
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def layer(tree):
    """The tree as a tar, and its hash before it is compressed."""
    raw = hashlib.sha256()

    class Both:
        def __init__(self, to):
            self.to = to

        def write(self, data):
            raw.update(data)
            return self.to.write(data)

    path = tree.parent / "layer.tar.gz"
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
        with tarfile.open(fileobj=Both(packed), mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for at in sorted(tree.rglob("*"), key=os.fspath):
                info = tar.gettarinfo(at, os.fspath(at.relative_to(tree)))
                info.mtime, info.uname, info.gname = EPOCH, "", ""
                if info.isfile():
                    with open(at, "rb") as data:
                        tar.addfile(info, data)
                else:
                    tar.addfile(info)
    return path.read_bytes(), raw.hexdigest()


def packages(tree):
    """Name, version and architecture of what dpkg has installed in the tree."""
    said = subprocess.run(["dpkg-query", f"--admindir={tree}/var/lib/dpkg", "-W", "-f",
                           "${Package}\t${Version}\t${Architecture}\t${source:Package}\t${Homepage}\n"],
                          check=True, capture_output=True, text=True).stdout
    return [line.split("\t") for line in sorted(said.splitlines())]


def contents(tree, version):
    """The list, as SPDX."""
    own = "SPDXRef-retort"
    rows, relations, files = [], [], []
    for name, number, machine, source, home in packages(tree):
        ref = "SPDXRef-deb-" + "".join(c if c.isalnum() else "-" for c in f"{name}-{machine}")
        rows.append({
            "SPDXID": ref, "name": name, "versionInfo": number, "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False, "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION",
            "copyrightText": "NOASSERTION", "supplier": "Organization: Debian",
            "sourceInfo": f"built from the source package {source}", "homepage": home or "NOASSERTION",
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                              "referenceLocator": f"pkg:deb/debian/{quote(name)}@{quote(number)}?arch={machine}"
                                                  "&distro=bookworm"}]})
        relations.append({"spdxElementId": own, "relationshipType": "DEPENDS_ON", "relatedSpdxElement": ref})
    ours = [f for f in sorted(tree.rglob("*"), key=os.fspath)
            if f.is_file() and not f.is_symlink() and os.fspath(f.relative_to(tree)).startswith(OURS)]
    for i, file in enumerate(ours):
        data = file.read_bytes()
        files.append({"SPDXID": f"SPDXRef-file-{i}", "fileName": f"./{file.relative_to(tree)}",
                      "checksums": [{"algorithm": "SHA1", "checksumValue": hashlib.sha1(data).hexdigest()},
                                    {"algorithm": "SHA256", "checksumValue": hashlib.sha256(data).hexdigest()}],
                      "licenseConcluded": "NOASSERTION", "licenseInfoInFiles": ["NOASSERTION"],
                      "copyrightText": "NOASSERTION"})
    together = "".join(sorted(f["checksums"][0]["checksumValue"] for f in files))
    rows.insert(0, {
        "SPDXID": own, "name": "retort", "versionInfo": version, "downloadLocation": "NOASSERTION",
        "filesAnalyzed": True, "hasFiles": [f["SPDXID"] for f in files],
        "packageVerificationCode": {"packageVerificationCodeValue": hashlib.sha1(together.encode()).hexdigest()},
        "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0", "licenseInfoFromFiles": ["NOASSERTION"],
        "copyrightText": "NOASSERTION", "primaryPackagePurpose": "APPLICATION"})
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"retort-{version}",
        "documentNamespace": f"https://retort.invalid/spdx/{version}/{together and hashlib.sha256(together.encode()).hexdigest()}",
        "creationInfo": {"created": TIME, "creators": ["Tool: retort-deploy-oci"]},
        "packages": rows, "files": files,
        "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                           "relatedSpdxElement": own}, *relations]}


def configuration(version, uid, machine, diff):
    return {
        "created": TIME, "architecture": machine, "os": "linux",
        "config": {
            "User": f"{uid}:{uid}", "WorkingDir": "/var/lib/retort", "StopSignal": "SIGTERM",
            "Entrypoint": ["/usr/bin/retort"], "Cmd": ["serve", "--listen", "0.0.0.0:8000", "--plain-http"],
            "Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/var/lib/retort",
                    "RETORT_STATE=/var/lib/retort"],
            "ExposedPorts": {"8000/tcp": {}}, "Volumes": {"/var/lib/retort": {}},
            "Labels": {"org.opencontainers.image.title": "retort", "org.opencontainers.image.version": version,
                       "org.opencontainers.image.licenses": "Apache-2.0"}},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{diff}"]},
        "history": [{"created": TIME, "created_by": "deploy/oci/build"}]}


def main(tree, layout, version, uid):
    tree, layout = Path(tree), Path(layout)
    machine = MACHINES.get(os.uname().machine, os.uname().machine)
    (layout / "blobs/sha256").mkdir(parents=True)
    packed, diff = layer(tree)
    spdx = document(contents(tree, version))
    image = put(layout, document({
        "schemaVersion": 2, "mediaType": MANIFEST,
        "config": put(layout, document(configuration(version, uid, machine, diff)),
                      "application/vnd.oci.image.config.v1+json"),
        "layers": [put(layout, packed, "application/vnd.oci.image.layer.v1.tar+gzip")]}), MANIFEST)
    listed = put(layout, document({
        "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": SPDX,
        "config": put(layout, b"{}", "application/vnd.oci.empty.v1+json"),
        "layers": [put(layout, spdx, SPDX)], "subject": image}), MANIFEST, artifactType=SPDX)
    image |= {"platform": {"architecture": machine, "os": "linux"},
              "annotations": {"org.opencontainers.image.ref.name": version}}
    (layout / "index.json").write_bytes(document({"schemaVersion": 2, "mediaType": INDEX, "manifests": [image, listed]}))
    (layout / "oci-layout").write_bytes(document({"imageLayoutVersion": "1.0.0"}))
    (layout / "sbom.spdx.json").write_bytes(spdx)


if __name__ == "__main__":
    main(*sys.argv[1:])
