#!/usr/bin/env python3
"""check.py KUSTOMIZE KUBERNETES-ZIP OPERATOR-ZIP COMPOSE-ZIP PROGRAM: holds what the overlays come to against published schemas.

Kubernetes' own is the OpenAPI document of its module, the ServiceMonitor's that of its operator's definition. Both are
read strictly: a field that no schema knows is a mistake, as it is for `kubectl apply --validate=strict`. What a schema
cannot know is looked at besides: that names meet, that settings exist, that the metric is one of ours. The files
of deploy/compose are held against the schema of Compose.
"""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import jsonschema
import yaml

HERE = Path(__file__).resolve().parent
wrong = []


def note(where, text):
    wrong.append(f"{where}: {text}")


def strict(schema):
    """The same without fields that nobody has named; a number or a text where Kubernetes takes either."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("format") == "int-or-string" or schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    made = {key: strict(value) for key, value in schema.items()}
    if "properties" in made and "additionalProperties" not in made and not made.get(
            "x-kubernetes-preserve-unknown-fields"):
        made["additionalProperties"] = False
    return made


def quantities(definitions):
    """A quantity is written as a text or as a number."""
    definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"] = {"type": ["string", "number"]}


def inside(path, end):
    with zipfile.ZipFile(path) as archive:
        name, = (n for n in archive.namelist() if n.endswith(end))
        return archive.read(name)


def schemas(kubernetes, operator):
    """By (group, version, kind)."""
    swagger = json.loads(inside(kubernetes, "/api/openapi-spec/swagger.json"))
    definitions = strict(swagger["definitions"])
    quantities(definitions)
    found = {}
    for name, definition in swagger["definitions"].items():
        for gvk in definition.get("x-kubernetes-group-version-kind", []):
            found[gvk["group"], gvk["version"], gvk["kind"]] = {"$ref": f"#/definitions/{name}",
                                                               "definitions": definitions}
    crd = yaml.safe_load(inside(operator, "/example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml"))
    own = strict(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    own["properties"]["metadata"] = {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    found["monitoring.coreos.com", "v1", "ServiceMonitor"] = {**own, "definitions": definitions}
    return found


def gvk(document):
    group, _, version = document["apiVersion"].rpartition("/")
    return group, version, document["kind"]


def validate(where, documents, known):
    for document in documents:
        schema = known.get(gvk(document))
        at = f"{where} {document['kind']}/{document['metadata']['name']}"
        if not schema:
            note(at, f"no schema for {gvk(document)}")
            continue
        for error in jsonschema.Draft4Validator(schema).iter_errors(document):
            note(at, f"{'/'.join(map(str, error.path))}: {error.message[:200]}")


def pods(documents):
    return [d for d in documents if d["kind"] == "StatefulSet"]


def check_names(where, documents, program):
    """Ports, volumes, secrets and labels that refer to each other; the settings; the walls."""
    secrets = {d["metadata"]["name"] for d in yaml.safe_load_all((HERE / "many/secrets.example.yaml").read_text())}
    maps = {d["metadata"]["name"]: d["data"] for d in documents if d["kind"] == "ConfigMap"}
    page = subprocess.run([program, "help", "configuration"], check=True, capture_output=True, text=True).stdout
    for d in pods(documents):
        spec = d["spec"]["template"]["spec"]
        volumes = {v["name"] for v in spec["volumes"]} | {c["metadata"]["name"] for c in d["spec"]["volumeClaimTemplates"]}
        for volume in spec["volumes"]:
            if "secret" in volume and volume["secret"]["secretName"] not in secrets:
                note(where, f"no secret {volume['secret']['secretName']}")
        if spec["hostUsers"] is not False or not spec["securityContext"]["runAsNonRoot"]:
            note(where, "a pod without a user namespace, or as root")
        for c in (*spec["initContainers"], *spec["containers"]):
            if not {m["name"] for m in c["volumeMounts"]} <= volumes:
                note(where, f"{c['name']} mounts what is not there")
            if c["securityContext"]["capabilities"] != {"drop": ["ALL"]} or c["securityContext"]["allowPrivilegeEscalation"]:
                note(where, f"{c['name']} has capabilities")
            env = {e["name"] for e in c.get("env", [])}
            for source in c.get("envFrom", []):
                env |= set(maps[source["configMapRef"]["name"]])
            for name in env:
                flag = name.removeprefix("RETORT_").lower().replace("_", "-")
                if not re.search(rf"^\| `{flag}` \|", page, re.M):
                    note(where, f"there is no setting {name}")
        serve = spec["containers"][0]
        done = subprocess.run([program, *serve["args"], "--check-config"], capture_output=True, text=True)
        if done.returncode:
            note(where, f"args: {done.stderr}")
        labels = d["spec"]["template"]["metadata"]["labels"]
        for other in documents:
            selector = other["spec"].get("selector") if other["kind"] == "Service" else None
            if selector is not None and not selector.items() <= labels.items():
                note(where, f"Service {other['metadata']['name']} selects none of the pods")
    for d in documents:
        if d["kind"] == "HorizontalPodAutoscaler":
            for metric in d["spec"]["metrics"]:
                source = (HERE.parents[1] / "src/doors/operator/operator.c").read_text()
                if f'"{metric["pods"]["metric"]["name"]}"' not in source:
                    note(where, f"there is no metric {metric['pods']['metric']['name']}")


def check_compose(compose):
    schema = json.loads(inside(compose, "/schema/compose-spec.json"))
    validator = jsonschema.validators.validator_for(schema)(schema)
    for file in sorted((HERE.parent / "compose").glob("*.yaml")):
        document = yaml.safe_load(file.read_text())
        for error in validator.iter_errors(document):
            note(file.name, f"{'/'.join(map(str, error.path))}: {error.message[:200]}")
        print(f"compose: {file.name}")
    if validator.is_valid({"services": {"a": {"imaje": "b"}}}):
        note("compose", "a field that does not exist was not found")


def main(kustomize, kubernetes, operator, compose, program):
    known = schemas(kubernetes, operator)
    for overlay in ("single", "many"):
        built = subprocess.run([kustomize, "build", HERE / overlay], check=True, capture_output=True, text=True).stdout
        documents = list(yaml.safe_load_all(built))
        validate(overlay, documents, known)
        check_names(overlay, documents, program)
        print(f"{overlay}: {', '.join(sorted(d['kind'] for d in documents))}")
    validate("secrets", list(yaml.safe_load_all((HERE / "many/secrets.example.yaml").read_text())), known)
    check_compose(compose)
    # The check itself: one letter more is found.
    before = len(wrong)
    document = next(d for d in documents if d["kind"] == "StatefulSet")
    document["spec"]["template"]["spec"]["hostUserz"] = False
    validate("a mistake", [document], known)
    if len(wrong) != before + 1:
        note("check", "a field that does not exist was not found")
    else:
        wrong.pop()
    print("\n".join(wrong) or "all of it is good")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
