"""A3: the resource of a session pool makes, changes and ends a real pool."""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
import venv
from pathlib import Path

import pytest

from support import retort
from azure import ARM, NEW, Pool, code_of, document
from support.server import Server

SEED = Path(__file__).parent / "template.json"
VERSION = "?api-version=2025-10-02-preview"


def filled(template, **parameters):
    """The resource of a template with its parameters filled in, as a deployment does it."""
    values = {name: parameters.get(name, p.get("defaultValue")) for name, p in template["parameters"].items()}
    text = json.dumps(template["resources"][0])
    for name, value in values.items():
        text = text.replace(f"\"[parameters('{name}')]\"", json.dumps(value))
    text = text.replace("\"[concat(parameters('memory'), 'Gi')]\"", json.dumps(f"{values['memory']}Gi"))
    return json.loads(text)


def settle(pool, seconds=retort.SECONDS):
    """Until it is up."""
    retort.wait_until(lambda: pool.client.get(pool.prefix).json["properties"]["provisioningState"] == "Succeeded",
                      "the pool", seconds)


def made(server, name, doc, status=201):
    pool = Pool(server, "/azure/pools/" + name)
    pool.client.request("PUT", pool.prefix, doc).expect(status)
    return pool


def test_the_template_works_as_given(server):
    template = json.loads(SEED.read_text())
    resource = filled(template, environmentName="env", sessionPoolName="from-template", cpu=1, memory=1)
    client = server.client()
    answer = client.request("PUT", ARM + "from-template" + VERSION, resource).expect(201).json
    assert answer["id"] == ARM + "from-template" and answer["type"] == "Microsoft.App/sessionPools"
    properties = answer["properties"]
    assert properties["scaleConfiguration"] == {"maxConcurrentSessions": 10, "readySessionInstances": 5}
    endpoint = properties["mcpServerSettings"]["mcpServerEndpoint"]
    assert endpoint == f"http://localhost:{server.port}{ARM.replace('/providers/Microsoft.App', '')}from-template/mcp"
    told = {row["property"] for row in properties["retort"]["ignored"]}
    told.discard("properties.customContainerTemplate.containers[].image")  # where the Python is not 3.12
    assert told == {"location", "properties.environmentId",
                    "properties.customContainerTemplate.ingress"}

    key = client.post(ARM + "from-template/fetchMCPServerCredentials?api-version=2025-02-02-preview").expect(200).json["apiKey"]
    with Pool(server, ARM + "from-template", **{"x-ms-apikey": key}) as pool:
        environment = pool.tool("launchShell")["structuredContent"]["environmentId"]
        ran = pool.tool("runPythonCodeInRemoteEnvironment", environmentId=environment,
                        pythonCode="import os\nprint(os.environ['AZURE_CODE_EXEC_ENV'], os.environ['http_proxy'])")
        assert ran["structuredContent"]["stdout"] == "AzureContainerApps-DynamicSessions-Py3.12 http://127.0.0.1:3128\n"
        assert pool.get("health", identifier=None).json == "healthy"
        settle(pool)
        retort.wait_until(lambda: client.get(ARM + "from-template").json["properties"]["templateUpdateStatus"][
            "activeTemplate"]["status"]["readyCount"] == 5, "five that are ready")
    client.delete(ARM + "from-template" + VERSION).expect(204)
    client.close()


def deploy(client, template, name="first", **parameters):
    path = ARM.replace("Microsoft.App/sessionPools/", "Microsoft.Resources/deployments/") + name + "?api-version=2024-03-01"
    values = {key: {"value": value} for key, value in parameters.items()}
    return client.request("PUT", path, {"properties": {"mode": "Incremental", "template": template, "parameters": values}})


def test_the_template_is_deployed_literally(server):
    template = json.loads(SEED.read_text())
    with server.client() as client:
        answer = deploy(client, template, environmentName="env", sessionPoolName="deployed", memory=1).expect(201).json
        assert answer["properties"]["provisioningState"] == "Running"  # until the pool is up
        outputs = {name: o["value"] for name, o in answer["properties"]["outputs"].items()}
        assert outputs["AZURE_SESSION_POOL_ID"] == ARM + "deployed"
        endpoint = outputs["CODE_INTERPRETER_MCP_ENDPOINT"]
        assert endpoint.endswith("/sessionPools/deployed/mcp")
        key = client.post(outputs["AZURE_SESSION_POOL_ID"] + "/fetchMCPServerCredentials?api-version=2025-02-02-preview")
        shown = client.get(ARM + "deployed").json
        assert shown["location"] == "local"
        container = shown["properties"]["customContainerTemplate"]["containers"][0]
        assert container["resources"] == {"cpu": 1, "memory": "1Gi"} and "codeinterpreter" in container["image"]
    with Pool(server, ARM + "deployed", **{"x-ms-apikey": key.expect(200).json["apiKey"]}) as pool:
        ran = pool.tool("runPythonCodeInRemoteEnvironment", environmentId="trackc-session", pythonCode="print(1)")
        assert ran["structuredContent"]["stdout"] == "1\n"
        pool.client.delete(ARM + "deployed").expect(204)


@pytest.mark.parametrize("change, said", [
    ({"sessionPoolName": None}, "sessionPoolName"), ({"name": "[nothing('x')]"}, "nothing"),
    ({"name": "[concat('a']"}, "cannot be read"), ({"name": "[" + "concat(" * 40 + "]"}, "too deep"),
    ({"name": "[parameters('cpu').x]"}, "member"), ({"name": "['a' 'b']"}, "goes on"), ({"name": "['a"}, None),
    ({"type": "Microsoft.Compute/virtualMachines"}, "sessionPools"), ({"name": "[concat(parameters('nope'), 'x')]"}, "parameters"),
])
def test_a_template_that_is_wrong_makes_nothing(server, change, said):
    template = json.loads(SEED.read_text())
    name = change.pop("sessionPoolName", "never-made")
    template["resources"][0].update(change)
    with server.client() as client:
        before = client.get("/azure/pools").json["value"]
        answer = deploy(client, template, environmentName="env", **({"sessionPoolName": name} if name else {})).expect(400)
        assert said is None or said in answer.json["error"]["message"]
        assert len(client.get("/azure/pools").json["value"]) == len(before)


def test_a3_it_is_a_pool_of_ours(server):
    doc = document(scaleConfiguration={"maxConcurrentSessions": 2, "readySessionInstances": 1},
                   dynamicPoolConfiguration={"lifecycleConfiguration": {"lifecycleType": "Timed",
                                                                        "cooldownPeriodInSeconds": 600}},
                   customContainerTemplate={"containers": [{"image": "default",
                                                            "resources": {"cpu": 0.5, "memory": "256Mi"}}]})
    with made(server, "real", doc) as pool:
        native = next(p for p in pool.client.get("/v1/pools").json["data"] if p["name"] == "real")
        assert (native["max_sessions"], native["ready"], native["idle_timeout"]) == (2, 1, 600)
        assert (native["limits"]["memory_bytes"], native["limits"]["cpus"]) == (256 << 20, 0.5)
        assert native["limits"]["wall_s"] == 220
        assert pool.run("1 + 1")["result"] == 2
        for busy in ("first", "second"):  # one that is idle would make room
            body = {"code": "import time; time.sleep(100)", "executionType": "Asynchronous"}
            id = pool.post("executions", body, NEW, identifier=busy).expect(200).json["id"]
            retort.wait_until(lambda: pool.get("executions/" + id, NEW, identifier=busy).json["status"] == "Running", "it to run")
        full = pool.post("code/execute", {"properties": {"code": "1"}}, identifier="third")
        assert code_of(full.expect(429)) == "SessionsCountExceedsLimit"
        pool.client.delete(pool.prefix).expect(204)


def test_a3_a_change_is_for_new_sessions(server):
    def of(value):
        return document(customContainerTemplate={"containers": [{"image": "default", "env": [{"name": "WHICH", "value": value}]}]})

    with made(server, "changing", of("first")) as pool:
        assert pool.run("import os; os.environ['WHICH']")["result"] == "first"
        pool.client.request("PUT", pool.prefix, of("second")).expect(200)
        assert pool.run("x = 1; os.environ['WHICH']")["result"] == "first"
        with Pool(server, pool.prefix) as other:
            assert other.run("import os; os.environ['WHICH']")["result"] == "second"
        assert pool.run("x")["result"] == 1
        pool.client.delete(pool.prefix).expect(204)


def test_a3_patch_changes_what_it_names(server):
    doc = document(scaleConfiguration={"maxConcurrentSessions": 9, "readySessionInstances": 0})
    with made(server, "patched", doc) as pool:
        scale = {"properties": {"scaleConfiguration": {"maxConcurrentSessions": 3}}}
        shown = pool.client.request("PATCH", pool.prefix, scale).expect(200).json["properties"]
        assert shown["scaleConfiguration"] == {"maxConcurrentSessions": 3, "readySessionInstances": 0}
        assert pool.client.get(pool.prefix).json["properties"]["scaleConfiguration"]["maxConcurrentSessions"] == 3
        assert code_of(pool.client.request("PATCH", "/azure/pools/nope", scale).expect(404)) == "SessionPoolNotFound"
        pool.client.delete(pool.prefix).expect(204)


def test_a3_delete_ends_its_sessions(server):
    with made(server, "ending", document()) as pool:
        pool.run("x = 1; open('kept', 'w').write('1')")
        pool.client.delete(pool.prefix).expect(204)
        assert code_of(pool.post("code/execute", {"properties": {"code": "x"}}).expect(404)) == "SessionPoolNotFound"
        assert pool.client.delete(pool.prefix).expect(204)
        assert not [s for s in pool.client.all("/v1/sessions") if s["pool"] == "ending"]
        pool.client.request("PUT", pool.prefix, document()).expect(201)
        assert pool.get("files", NEW).json["value"] == [], "nothing of the one before"
        pool.client.delete(pool.prefix).expect(204)


def test_a3_on_container_exit(server):
    life = {"lifecycleConfiguration": {"lifecycleType": "OnContainerExit", "maxAlivePeriodInSeconds": 2}}
    with made(server, "alive", document(dynamicPoolConfiguration=life)) as pool:
        pool.run("x = 1")
        told = {r["property"] for r in pool.client.get(pool.prefix).json["properties"]["retort"]["ignored"]}
        assert "properties.dynamicPoolConfiguration.lifecycleConfiguration.lifecycleType" in told

        def over():
            return "NameError" in pool.run("x")["stderr"]
        retort.wait_until(over, "the end of its age, although it is in use")
        pool.client.delete(pool.prefix).expect(204)


def test_a3_cooldown(server):
    life = {"executionType": "Timed", "cooldownPeriodInSeconds": 1}
    with made(server, "cooling", document(dynamicPoolConfiguration=life)) as pool:
        pool.run("x = 1")

        def asleep():
            return next(s for s in pool.client.all("/v1/sessions") if s["pool"] == "cooling")["state"] == "asleep"
        retort.wait_until(asleep, "the cooldown")
        assert "NameError" in pool.run("x")["stderr"]
        pool.client.delete(pool.prefix).expect(204)


def test_a3_secrets_are_used_and_never_shown(server):
    doc = document(secrets=[{"name": "token", "value": "s3cret"}],
                   customContainerTemplate={"containers": [{"image": "default",
                                                            "env": [{"name": "TOKEN", "secretRef": "token"}]}]})
    with made(server, "secretive", doc) as pool:
        assert pool.run("import os; os.environ['TOKEN']")["result"] == "s3cret"
        shown = pool.client.get(pool.prefix)
        assert "s3cret" not in shown.text and shown.json["properties"]["secrets"] == [{"name": "token"}]
        pool.client.request("PATCH", pool.prefix, {"tags": {"a": "b"}}).expect(200)
        with Pool(server, pool.prefix) as other:
            assert other.run("import os; os.environ['TOKEN']")["result"] == "s3cret"
        pool.client.delete(pool.prefix).expect(204)
    doc["properties"]["secrets"] = []
    with server.client() as client:
        assert code_of(client.request("PUT", "/azure/pools/secretive", doc).expect(400)) == "InvalidSessionPool"


def test_a3_egress(server):
    with made(server, "closed", document(sessionNetworkConfiguration={"status": "EgressDisabled"})) as pool:
        assert pool.run("import os; os.environ.get('http_proxy', 'none')")["result"] == "none"
        pool.client.delete(pool.prefix).expect(204)
    with made(server, "open", document(sessionNetworkConfiguration={"status": "egressEnabled"})) as pool:
        assert pool.run("import os; os.environ['HTTPS_PROXY']")["result"] == "http://127.0.0.1:3128"
        private = "import urllib.request as u\ntry:\n    u.urlopen('http://127.0.0.2:9/')\nexcept Exception as e: print(e)"
        assert "403" in pool.run("import os; os.environ['no_proxy'] = ''\n" + private)["stdout"]
        pool.client.delete(pool.prefix).expect(204)


@pytest.mark.parametrize("properties, code", [
    ({"containerType": "NodeLTS"}, "InvalidSessionPool"),
    ({"containerType": "CustomContainer"}, "InvalidSessionPool"),
    ({"poolManagementType": "Manual"}, "InvalidSessionPool"),
    ({"scaleConfiguration": {"maxConcurrentSessions": 0}}, "InvalidSessionPool"),
    ({"scaleConfiguration": {"maxConcurrentSessions": "many"}}, "InvalidSessionPool"),
    ({"scaleConfiguration": {"maxConcurrentSessions": 1, "readySessionInstances": 2}},
     "SessionPoolInvalidReadySessionInstances"),
    ({"dynamicPoolConfiguration": {"lifecycleConfiguration": {"maxAlivePeriodInSeconds": 5}}}, "InvalidSessionPool"),
    ({"dynamicPoolConfiguration": {"lifecycleConfiguration": {"lifecycleType": "Never"}}}, "InvalidSessionPool"),
    ({"sessionNetworkConfiguration": {"status": "Open"}}, "InvalidSessionPool"),
    ({"customContainerTemplate": {"containers": [{"image": "default", "resources": {"memory": "2 apples"}}]}},
     "InvalidSessionPool"),
    ({"customContainerTemplate": {"containers": [{"image": "default", "probes": [{"type": "Readiness"}]}]}},
     "InvalidSessionPool"),
])
def test_a3_what_is_wrong_is_refused(server, properties, code):
    with server.client() as client:
        assert code_of(client.request("PUT", "/azure/pools/wrong", document(**properties)).expect(400)) == code
        assert client.get("/azure/pools/wrong").status == 404


@pytest.mark.parametrize("kind, words", [("nodelts", "no JavaScript"), ("GpuBase", "no GPU"), ("Other", "PythonLTS or Shell")])
def test_a3_kinds_of_pools_that_are_not_made(server, kind, words):
    with server.client() as client:
        refused = client.request("PUT", "/azure/pools/other", document(containerType=kind)).expect(400)
        assert words in refused.json["error"]["message"]


def test_a3_an_unknown_image_names_what_there_is(server):
    doc = document(containerType="CustomContainer", customContainerTemplate={"containers": [{"image": "example/nope:1"}]})
    with server.client() as client:
        error = client.request("PUT", "/azure/pools/wrong", doc).expect(400).json["error"]
        assert "example/nope:1" in error["message"] and "there are: default" in error["message"]


def test_a3_what_means_nothing_is_told(server):
    doc = document(managedIdentitySettings=[{"identity": "x", "lifecycle": "None"}], unheardOf={"a": 1},
                   customContainerTemplate={"registryCredentials": {"server": "r"},
                                            "containers": [{"image": "default", "command": ["x"], "args": ["y"]}, {}]})
    with made(server, "talkative", doc) as pool:
        told = {r["property"]: r["reason"] for r in pool.client.get(pool.prefix).json["properties"]["retort"]["ignored"]}
        assert told["properties.unheardOf.a"] == "it is not known here"
        for name in ("location", "properties.managedIdentitySettings", "properties.customContainerTemplate.registryCredentials",
                     "properties.customContainerTemplate.containers[].command", "properties.customContainerTemplate.containers[]"):
            assert told[name]
        pool.client.delete(pool.prefix).expect(204)


def probed(image, *probes):
    return document(containerType="CustomContainer", customContainerTemplate={
        "containers": [{"image": image, "probes": list(probes)}], "ingress": {"targetPort": 6000}})


def probe(kind, path="/health", port=6000, **more):
    return {"type": kind, "httpGet": {"path": path, "port": port}, "periodSeconds": 1, **more}


def shown_probes(pool):
    return pool.client.get(pool.prefix).expect(200).json["properties"]["retort"].get("probes")


def test_a3_probes_are_run(server):
    doc = probed("default", probe("Startup"), probe("Liveness", failureThreshold=4, timeoutSeconds=2),
                 probe("Liveness", path="/nobody"), probe("Liveness", port=7000), {"type": "Liveness", "tcpSocket": {"port": 6000}})
    with made(server, "probed", doc) as pool:
        settle(pool)
        retort.wait_until(lambda: shown_probes(pool)[1]["runs"] > 1, "two runs of a liveness probe")
        startup, liveness, *others = shown_probes(pool)
        assert startup["state"] == liveness["state"] == "Passing" and liveness["failuresInARow"] == 0 and liveness["lastRunAt"]
        assert startup["type"] == "Startup" and startup["path"] == "/health"
        assert [o["state"] for o in others] == ["NotRun"] * 3 and all(o["reason"] and o["runs"] == 0 for o in others)
        assert shown_probes(pool)[0]["runs"] == startup["runs"]  # it ends when it has passed
        told = {r["property"] for r in pool.client.get(pool.prefix).json["properties"]["retort"]["ignored"]}
        where = "properties.customContainerTemplate.containers[].probes[]."
        assert {t for t in told if t.startswith(where)} == {where + "timeoutSeconds"}
        pool.client.request("PUT", pool.prefix, probed("default")).expect(200)
        assert shown_probes(pool) is None
        pool.client.delete(pool.prefix).expect(204)


def test_a3_probes_of_a_pool_that_is_down():
    with Server(config="[environment broken]\npreload = nothing_of_that_name\nimages = example/broken:*\n") as server:
        doc = probed("example/broken:1", probe("Startup", failureThreshold=2), probe("Liveness"))
        with made(server, "down", doc) as pool:
            retort.wait_until(lambda: shown_probes(pool)[0]["state"] == "Failing", "failures of the startup probe")
            startup, liveness = shown_probes(pool)
            assert startup["failuresInARow"] > 1 and startup["runs"] >= startup["failuresInARow"]
            assert liveness["state"] == "Pending" and liveness["runs"] == 0  # it waits for the other


def test_a_pool_that_is_deleted_while_the_first_one_starts():
    """The pool is let go of a second later, while the server still asks which pools are up."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="retort-slow-") as place:
        os.chmod(place, 0o755)
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--system-site-packages", "--without-pip", place], check=True)
        [packages] = Path(place).glob("lib/python3*/site-packages")
        (packages / "slow_module.py").write_text("import os, time\n"
                                                 f"while not os.path.exists({place + '/go'!r}):\n    time.sleep(0.05)\n")
        server = Server("--preload", "slow_module", config=f"[pool default]\npython = {place}/bin/python\n")
        try:
            server.launch()
            retort.wait_until(lambda: is_listening(server), "the socket")
            with server.client() as client:
                client.request("PUT", "/azure/pools/short-lived", document()).expect(201)
                client.request("DELETE", "/azure/pools/short-lived").expect(204)
            time.sleep(1.4)
            Path(place, "go").touch()
            server.wait_ready()
            server.stop()
        finally:
            server.discard()


def is_listening(server):
    with contextlib.suppress(OSError), server.client() as client:
        return client.get("/health").status == 200
    return False


def test_a3_a_pool_of_the_settings_stays_as_it_is(server):
    with server.client() as client:
        shown = client.get("/azure/pools/default").expect(200).json["properties"]
        assert shown["retort"]["fixed"] is True and shown["provisioningState"] == "Succeeded"
        for method, body in (("PUT", document()), ("PATCH", document()), ("DELETE", None)):
            assert client.request(method, "/azure/pools/default", body).expect(409).json["error"]["code"] == "Conflict"


@pytest.mark.parametrize("name", ["-x", "x" * 33, "a(b)"])
def test_a3_what_is_no_name(server, name):
    with server.client() as client:
        assert client.request("PUT", "/azure/pools/" + name, document()).status == 400


@pytest.mark.parametrize("path", ["/azure/pools", "/subscriptions/s/resourceGroups/g/providers/Microsoft.App/sessionPools",
                                  "/subscriptions/s/providers/Microsoft.App/sessionPools/"])
def test_a3_list(server, path):
    with server.client() as client:
        assert "default" in [p["name"] for p in client.get(path).expect(200).json["value"]]
        assert client.post(path, {}).status == 405


def test_a3_over_a_restart_and_only_for_admins():
    server = Server()
    admin = server.keys("create", "--tenant", "boss", "--admin", "--quiet").strip()
    user = server.keys("create", "--tenant", "user", "--quiet").strip()
    with server:
        doc = document(mcpServerSettings={"isMcpServerEnabled": True}, secrets=[{"name": "s", "value": "kept"}],
                       customContainerTemplate={"containers": [{"image": "default", "env": [{"name": "S", "secretRef": "s"}]}]})
        with Pool(server, "/azure/pools/lasting", key=admin, identifier="lasting-one") as pool, \
                Pool(server, "/azure/pools/lasting", key=user) as other:
            assert code_of(other.client.request("PUT", other.prefix, doc).expect(403)) == "AuthorizationFailed"
            pool.client.request("PUT", pool.prefix, doc).expect(201)
            pool.run("open('kept', 'w').write('1')")
            for method in ("PATCH", "DELETE"):
                assert other.client.request(method, other.prefix, doc if method == "PATCH" else None).status == 403
            assert other.post("fetchMcpServerCredentials", identifier=None).status == 403
            first = pool.post("fetchMCPServerCredentials", identifier=None).expect(200).json["apiKey"]
            assert pool.post("fetchMcpServerCredentials", identifier=None).json["apiKey"] == first
        server.stop(), server.start()
        with Pool(server, "/azure/pools/lasting", key=admin, identifier="lasting-one") as pool:
            assert pool.run("import os; os.environ['S'], os.listdir('.')")["result"] == "('kept', ['kept'])"
            assert pool.post("fetchMcpServerCredentials", identifier=None).json["apiKey"] == first
            with Pool(server, pool.prefix, **{"x-ms-apikey": first}) as caller:
                assert caller.rpc("tools/list").expect(200)
                assert caller.client.request("DELETE", pool.prefix).status == 403, "it is no admin's"
                second = pool.post("rotateMcpServerCredentials", identifier=None).json["apiKey"]
                assert second != first and caller.rpc("tools/list").status == 401
            with Pool(server, pool.prefix, **{"x-ms-apikey": second}) as caller:
                assert caller.rpc("tools/list").expect(200)
                third = pool.post("regenerateCredentials", identifier=None).json["apiKey"]
                assert third not in (first, second)


def test_an_environment_of_the_settings_is_an_image():
    folder = Path(tempfile.mkdtemp(prefix="retort-test-venv-", dir="/var/tmp"))
    folder.chmod(0o755)
    venv.create(folder, system_site_packages=True, with_pip=False)
    try:
        site = next(folder.glob("lib/python3*/site-packages"))
        (site / "only_here.py").write_text("where = 'in the environment'\n")
        config = f"[environment special]\npython = {folder}/bin/python\npreload = only_here\nimages = registry.example/special:*, other\n"
        with Server(config=config) as server:
            for image in ("special", "registry.example/special:1.2", "other"):
                doc = document(containerType="CustomContainer",
                               customContainerTemplate={"containers": [{"image": image}]})
                with made(server, "made", doc, 201 if image == "special" else 200) as pool:
                    assert pool.client.get(pool.prefix).json["properties"]["retort"]["environment"] == "special"
            with Pool(server, "/azure/pools/made") as pool:
                assert pool.run("import only_here; only_here.where")["result"] == "in the environment"
            code, out, _ = retort.call("serve", "--check-config", "--config", server.config)
            assert code == 0 and b"[environment special]" in out and b"registry.example/special:*" in out
    finally:
        shutil.rmtree(folder, ignore_errors=True)

