"""What Resource Manager has around a pool: groups, the provider, operations, deployments and their bounds."""

import copy
import json
from pathlib import Path

import pytest

from azure import NEW, Pool, code_of
from support.retort import wait_until
from support.server import Server

SUB = "/subscriptions/0000-1"
TEMPLATE = json.loads((Path(__file__).parent / "template.json").read_text())
BODY = {"location": "local", "properties": {"containerType": "PythonLTS", "poolManagementType": "Dynamic",
        "scaleConfiguration": {"maxConcurrentSessions": 3, "readySessionInstances": 0}}}


@pytest.fixture(scope="module")
def house():
    with Server() as server, server.client() as client:
        yield client


def group(name, rest=""):
    return f"{SUB}/resourceGroups/{name}" + rest


def pool_path(where, name):
    return group(where, f"/providers/Microsoft.App/sessionPools/{name}?api-version={NEW}")


def deployment(where, name, rest=""):
    return group(where, f"/providers/Microsoft.Resources/deployments/{name}{rest}?api-version=2022-09-01")


def small(**parameters):
    """A template with one pool, and the declarations to be tried."""
    return {"parameters": {"poolName": {"type": "string", "defaultValue": "made"}, **parameters},
            "resources": [{"type": "Microsoft.App/sessionPools", "apiVersion": NEW, "name": "[parameters('poolName')]",
                           **copy.deepcopy(BODY)}],
            "outputs": {"id": {"type": "string", "value": "[resourceId('Microsoft.App/sessionPools', "
                                                          "parameters('poolName'))]"}}}


def states_of(ask):
    """Each state once, up to the last: a pool has never been up when it is made."""
    seen = [ask()]

    def is_over():
        seen.append(ask())
        return seen[-1] not in ("InProgress", "Running")

    wait_until(is_over, "the end of the operation")
    return list(dict.fromkeys(seen))


def asked(template, **given):
    return {"properties": {"mode": "Incremental", "template": template,
                           "parameters": {k: {"value": v} for k, v in given.items()}}}


def test_a3_numbers_as_text_and_the_operation_of_a_new_pool(house):
    body = copy.deepcopy(BODY)
    body["properties"]["scaleConfiguration"] = {"maxConcurrentSessions": "5", "readySessionInstances": "0"}
    body["properties"]["dynamicPoolConfiguration"] = {"lifecycleConfiguration": {
        "lifecycleType": "Timed", "cooldownPeriodInSeconds": "300"}}
    made = house.request("PUT", pool_path("text", "as-text"), body).expect(201)
    where = "/" + made.headers["azure-asyncoperation"].split("//")[1].partition("/")[2]
    assert states_of(lambda: house.get(where).expect(200).json["status"]) == ["InProgress", "Succeeded"]
    assert house.get(pool_path("text", "as-text")).json["properties"]["provisioningState"] == "Succeeded"
    shown = house.get(pool_path("text", "as-text")).json["properties"]
    assert shown["scaleConfiguration"] == {"maxConcurrentSessions": 5, "readySessionInstances": 0}
    assert shown["dynamicPoolConfiguration"]["lifecycleConfiguration"]["cooldownPeriodInSeconds"] == 300
    for bad in ("5x", "", " ", "-1", "1e3"):
        body["properties"]["scaleConfiguration"]["maxConcurrentSessions"] = bad
        assert house.request("PUT", pool_path("text", "as-text"), body).status == 400, bad
    house.request("DELETE", pool_path("text", "as-text")).expect(204)
    assert house.get(where).status == 404  # of a pool that is no more
    assert house.get(where.replace("as-text", "default")).json["status"] == "Succeeded"
    assert house.get(where.replace(".as-text", "")).status == 404


def test_a3_groups_are_apart(house):
    for where, most in (("blue", 2), ("red", 4)):
        body = copy.deepcopy(BODY)
        body["properties"]["scaleConfiguration"]["maxConcurrentSessions"] = most
        made = house.request("PUT", pool_path(where, "Twin"), body).expect(201).json
        assert made["id"] == pool_path(where, "Twin").partition("?")[0] and made["name"] == "Twin"
    for where, most in (("BLUE", 2), ("red", 4)):
        got = house.get(pool_path(where, "twin")).expect(200).json["properties"]
        assert got["scaleConfiguration"]["maxConcurrentSessions"] == most
    assert house.get(pool_path("green", "twin")).status == 404
    names = {where: [p["name"] for p in house.get(pool_path(where, "")[:-len(f"/?api-version={NEW}")]).json["value"]]
             for where in ("blue", "green")}
    assert names == {"blue": ["default", "Twin"], "green": ["default"]}
    run = {"properties": {"code": "who = 'blue'"}}
    data = "/sessionPools/twin/code/execute?identifier=the-same"
    house.post(group("blue", data), run).expect(200)
    run["properties"]["code"] = "'who' in globals()"
    assert house.post(group("red", data), run).json["properties"]["result"] is False
    house.request("DELETE", pool_path("red", "twin")).expect(204)
    house.get(pool_path("blue", "twin")).expect(200)
    house.request("DELETE", pool_path("blue", "twin")).expect(204)


def test_a3_the_provider_the_group_and_the_environment(house):
    provider = house.get(SUB + "/providers/Microsoft.App?api-version=2024-11-01").expect(200).json
    assert provider["registrationState"] == "Registered"
    assert "sessionPools" in [t["resourceType"] for t in provider["resourceTypes"]]
    assert house.get(group("any")).expect(200).json["properties"]["provisioningState"] == "Succeeded"
    assert house.request("HEAD", group("any")).status == 204
    env = house.get(group("any", "/providers/Microsoft.App/managedEnvironments/env-1")).expect(200).json
    assert env["name"] == "env-1"


PARAMETERS = [
    ({"type": "int", "minValue": 1, "maxValue": 16}, [1, 16], [0, 17, "4", 1.5, True, None]),
    ({"type": "string", "minLength": 3, "maxLength": 5}, ["abc", "abcde"], ["ab", "abcdef", 3, ["abc"]]),
    ({"type": "string", "minLength": 2, "maxLength": 3}, ["äö", "日本語", "x😀"], ["ä", "äöüß", "😀😀"]),
    ({"type": "string", "allowedValues": ["eastus", "north(stage)"]}, ["eastus", "EastUS"], ["west", "", 1]),
    ({"type": "int", "allowedValues": [1, 2]}, [2], [3, "2"]),
    ({"type": "bool"}, [True, False], ["true", 1]),
    ({"type": "array", "minLength": 1, "allowedValues": ["a", "b"]}, [["a"], ["b", "a"]], [[], ["c"], "a"]),
    ({"type": "object"}, [{}], [[], "x"]),
    ({"type": "secureString", "minLength": 2}, ["xy"], ["x", 12]),
    ({"type": "float"}, [], [1, "x"]),
]


@pytest.mark.parametrize("declared,good,bad", PARAMETERS, ids=lambda p: str(p.get("type")) if isinstance(p, dict) else None)
def test_a3_the_bounds_of_a_template(house, declared, good, bad):
    template = small(tried=declared)
    for value in good:
        house.post(deployment("bounds", "d", "/validate"), asked(template, tried=value)).expect(200)
    for value in bad:
        answer = house.post(deployment("bounds", "d", "/validate"), asked(template, tried=value)).expect(400)
        assert code_of(answer) == "InvalidTemplate" and "tried" in answer.json["error"]["message"], value
        assert house.request("PUT", deployment("bounds", "d"), asked(template, tried=value)).status == 400
    assert house.post(deployment("bounds", "d", "/validate"), asked(template)).status == 400  # it has no value
    assert house.get(deployment("bounds", "d")).status == 404


def test_a3_undeclared_parameters_and_bad_defaults(house):
    path = deployment("bounds", "u", "/validate")
    answer = house.post(path, asked(small(), surprise=1)).expect(400)
    assert "surprise" in answer.json["error"]["message"]
    assert house.post(path, asked(small(n={"type": "int", "maxValue": 3, "defaultValue": 4}))).status == 400
    assert house.post(path, {"properties": {}}).status == 400


def test_a3_null_is_not_given_and_a_computed_default_has_the_bounds_too(house):
    declared = {"type": "string", "allowedValues": ["made-b", "made-c"], "defaultValue": "[concat(parameters('poolName'), '-b')]"}
    path, template = deployment("bounds", "c", "/validate"), small(tried=declared)
    template["outputs"]["tried"] = {"type": "string", "value": "[parameters('tried')]"}
    for given in ({}, {"tried": None}, {"poolName": None, "tried": "made-c"}):
        house.post(path, asked(template, **given)).expect(200)
    answer = house.post(path, asked(template, poolName="other")).expect(400)
    assert "the default" in answer.json["error"]["message"] and "'tried'" in answer.json["error"]["message"]
    del template["outputs"]["tried"]  # also of a parameter that nothing uses
    house.post(path, asked(template, poolName="other")).expect(400)


def test_a3_the_mode_of_a_deployment(house):
    """Complete deletes what a template does not name: to do less is no answer."""
    for mode, status in (("Incremental", 200), ("incremental", 200), ("Complete", 400), ("Other", 400)):
        body = asked(small())
        body["properties"]["mode"] = mode
        assert house.post(deployment("modes", "d", "/validate"), body).status == status, mode
    assert house.get(deployment("modes", "d")).json["error"]["message"] == "there is no such deployment"


def test_a3_the_bounds_of_the_published_template(house):
    given = {"environmentName": "env", "sessionPoolName": "pub-1"}
    house.post(deployment("pub", "d", "/validate"), asked(TEMPLATE, **given)).expect(200)
    for name, value in (("cpu", 17), ("memory", 0), ("location", "westus"), ("sessionPoolName", "ab"), ("other", 1)):
        answer = house.post(deployment("pub", "d", "/validate"), asked(TEMPLATE, **{**given, name: value}))
        assert answer.status == 400 and name in answer.json["error"]["message"], name


def test_a3_a_template_as_az_sends_it(house):
    text = json.dumps(asked(small())).replace('"template": {', 'template:{ // as the file has it\n', 1).encode()
    json_type = {"Content-Type": "application/json"}
    house.request("POST", deployment("az", "d", "/validate"), body=text, headers=json_type).expect(200)
    assert house.request("POST", deployment("az", "d", "/validate"), body=text[:-1], headers=json_type).status == 400
    assert house.request("PUT", pool_path("az", "p"), body=b"{a:1}", headers=json_type).status == 400


def test_a3_a_template_may_make_nothing(house):
    body = asked({**small(), "resources": [], "outputs": {"name": {"type": "string", "value": "[parameters('poolName')]"}}}, poolName="none")
    made = house.request("PUT", deployment("life", "Empty"), body).expect(201).json
    assert made["properties"]["outputs"] == {"name": {"type": "string", "value": "none"}}
    states_of(lambda: house.get(deployment("life", "Empty")).expect(200).json["properties"]["provisioningState"])
    house.request("DELETE", deployment("life", "Empty"))
    for wrong in (None, "x", [{}] * 17):
        house.request("PUT", deployment("life", "Empty"), asked({**small(), "resources": wrong})).expect(400)


def test_a3_the_life_of_a_deployment(house):
    body = asked(small(pin={"type": "securestring"}, n={"type": "int", "defaultValue": 7}), poolName="lived", pin="1234")
    path, where = deployment("life", "First"), "life"
    assert house.request("HEAD", path).status == 404 and house.get(path).status == 404
    what = house.post(deployment(where, "First", "/whatIf"), body).expect(200).json
    assert [c["changeType"] for c in what["properties"]["changes"]] == ["Create"]
    assert house.get(pool_path(where, "lived")).status == 404
    made = house.request("PUT", path, body).expect(201).json
    id = pool_path(where, "lived").partition("?")[0]
    states = states_of(lambda: house.get(path).expect(200).json["properties"]["provisioningState"])
    assert [made["properties"]["provisioningState"]] + states[-1:] == ["Running", "Succeeded"]
    assert made["properties"]["outputs"] == {"id": {"type": "string", "value": id}}
    assert house.request("HEAD", path).status == 204
    got = house.get(deployment("LIFE", "first")).expect(200).json
    assert got["properties"]["outputResources"] == [{"id": id}] and got["name"] == "First"
    assert got["properties"]["parameters"]["n"]["value"] == 7 and "1234" not in json.dumps(got)
    listed = house.get(deployment(where, "").replace("/?", "?")).expect(200).json["value"]
    assert [d["name"] for d in listed] == ["First"]
    assert house.get(deployment("other-group", "").replace("/?", "?")).json["value"] == []
    [op] = house.get(deployment(where, "First", "/operations")).expect(200).json["value"]
    assert op["properties"]["provisioningState"] == "Succeeded" and op["properties"]["targetResource"]["id"] == id
    house.get(deployment(where, "First", "/operations/" + op["operationId"])).expect(200)
    assert house.get(group("life", "/deployments/First/operations")).expect(200).json["value"] == [op]
    assert house.get(deployment(where, "First", "/operations/99")).status == 404
    exported = house.post(deployment(where, "First", "/exportTemplate"), {}).expect(200).json["template"]
    assert exported == body["properties"]["template"]
    what = house.post(deployment(where, "First", "/whatIf"), body).json["properties"]["changes"]
    assert [c["changeType"] for c in what] == ["NoChange"]
    house.request("DELETE", path).expect(204)
    assert house.get(path).status == 404
    house.get(pool_path(where, "lived")).expect(200)  # what it made stays
    house.request("DELETE", pool_path(where, "lived")).expect(204)


def test_a3_the_python_of_an_image(house):
    have = house.get("/azure/pools/default/metadata").expect(200).json["runtimes"][0]["version"]
    major, minor, *_ = have.split(".")
    body = copy.deepcopy(BODY)
    body["properties"]["containerType"] = "CustomContainer"
    for tag, same in ((f"0.9.18-python{major}.{minor}", True), (f"0.9.18-python{have}", True), ("0.9.18", True),
                      (f"0.9.18-python{major}.{int(minor) + 1}", False), (f"0.9.18-python{major}.1", False),
                      (f"0.9.18-py{major}.1", False), (f"py{major}.{minor}-slim", True), (f"scipy-python_{major}.1", False),
                      (f"python-{major}", True), (f"py{major}1", True)):
        image = "mcr.microsoft.com/k8se/services/codeinterpreter:" + tag
        body["properties"]["customContainerTemplate"] = {"containers": [{"name": "one", "image": image}]}
        house.request("PUT", pool_path("image", "im"), body)
        wait_until(lambda: house.get(pool_path("image", "im")).json["properties"]["provisioningState"] == "Succeeded", "the pool")
        ignored = house.get(pool_path("image", "im")).json["properties"]["retort"]["ignored"]
        told = [row["reason"] for row in ignored if row["property"].endswith("containers[].image")]
        assert told == [] if same else have in told[0], tag
    house.request("DELETE", pool_path("image", "im")).expect(204)


# --- requests as some clients make them ---


def test_a1_an_empty_body_that_is_called_a_form(house):
    answer = house.request("POST", "/azure/pools/default/fetchMcpServerCredentials", body=b"",
                           headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert answer.expect(200).json["apiKey"]


@pytest.mark.parametrize("version,path", [("2024-02-02-preview", "files/upload"), (NEW, "files")])
def test_a2_a_form_that_is_called_json(house, version, path):
    body = (b'--b0undary\r\nContent-Disposition: form-data; name="file"; filename="/mnt/data/k.txt"\r\n'
            b"Content-Type: application/octet-stream\r\n\r\nas a form\r\n--b0undary--\r\n")
    url = f"/azure/pools/default/{path}?identifier=sk-form&api-version={version}"
    house.request("POST", url, body=body, headers={"Content-Type": "application/json"}).expect(200)
    got = house.get(f"/azure/pools/default/files/k.txt/content?identifier=sk-form&api-version={NEW}").expect(200)
    assert got.body == b"as a form"


def test_a2_json_is_json_all_the_same(house):
    url = "/azure/pools/default/code/execute?identifier=sk-json"
    for body in (b"--", b"--x", b"--x\r\n", b"-1", b"- -"):
        assert house.request("POST", url, body=body, headers={"Content-Type": "application/json"}).status == 400, body
    assert house.post(url, {"properties": {"code": "1"}}).expect(200)


def test_a2_operation_location_leads_back(house):
    with Pool(house_server(house), identifier="a&b=c/d") as pool:
        answer = pool.execution(code="6*7").expect(200)
        where = answer.headers["operation-location"]
        assert "identifier=a%26b%3Dc%2Fd" in where
        assert house.get("/" + where.split("/", 3)[3]).expect(200).json["result"]["executionResult"] == 42


def house_server(client):
    """What a Pool wants of a server: clients."""
    class One:
        def client(self, *_, **__):
            return client
    return One()


@pytest.mark.parametrize("id", ["with blank", "tab\tbed", "caf\u00e9-1", "line\nfeed"])
def test_a1_an_identifier_is_the_same_everywhere(house, id):
    with Pool(house_server(house), identifier=id) as pool:
        assert code_of(pool.post("code/execute", {"properties": {"code": "1"}}).expect(400)) == "InvalidSessionIdentifier"
        refused = pool.tool("runPythonCodeInRemoteEnvironment", environmentId=id, pythonCode="1")
        assert refused["isError"] and "InvalidSessionIdentifier" in refused["content"][0]["text"]


def member_of(doc, path):
    """What holds the last part of "a.b[0].c", and that part."""
    *above, last = path.replace("[", ".[").split(".")
    for part in above:
        doc = doc[int(part[1:-1])] if part[0] == "[" else doc[part]
    return doc, int(last[1:-1]) if last[0] == "[" else last


FULL = {"location": "here", "tags": {"team": "a"}, "identity": {"type": "None"}, "properties": {
    "environmentId": "e", "containerType": "CustomContainer", "poolManagementType": "Dynamic",
    "scaleConfiguration": {"maxConcurrentSessions": 3, "readySessionInstances": 0},
    "dynamicPoolConfiguration": {"lifecycleConfiguration": {"lifecycleType": "Timed", "cooldownPeriodInSeconds": 300}},
    "secrets": [{"name": "s", "value": "v"}], "sessionNetworkConfiguration": {"status": "EgressDisabled"},
    "managedIdentitySettings": [{"identity": "i", "lifecycle": "None"}],
    "mcpServerSettings": {"isMcpServerEnabled": True, "isMcpServerApiKeyDisabled": False},
    "customContainerTemplate": {
        "registryCredentials": {"server": "r"}, "ingress": {"targetPort": 80},
        "containers": [{
            "name": "c", "image": "default", "command": ["x"], "args": ["y"], "env": [{"name": "A", "value": "b"}],
            "resources": {"cpu": 0.5, "memory": "1Gi"},
            "probes": [{"type": "Liveness", "periodSeconds": 5, "httpGet": {
                "path": "/", "port": 80, "httpHeaders": [{"name": "h", "value": "w"}]}}]}]}}}


def members(v, path=""):
    """The path of every value of a document."""
    for key, below in v.items() if isinstance(v, dict) else enumerate(v) if isinstance(v, list) else ():
        at = f"{path}[{key}]" if isinstance(v, list) else f"{path}.{key}".lstrip(".")
        yield at
        yield from members(below, at)


@pytest.mark.parametrize("path", members(FULL))
def test_a3_a_member_of_another_type_is_named(house, path):
    doc = copy.deepcopy(FULL)
    above, key = member_of(doc, path)
    for wrong in ([1], "x", {"a": 1}, 1.5, True):
        if type(wrong) is type(above[key]):
            continue
        wrongly = copy.deepcopy(FULL)
        holder, last = member_of(wrongly, path)
        holder[last] = wrong
        if path.endswith("cpu") and wrong == 1.5:
            continue
        refused = house.request("PUT", pool_path("shapes", "wrong"), wrongly)
        assert refused.status == 400, (path, wrong)
        assert path in refused.json["error"]["message"] and code_of(refused) == "InvalidSessionPool"
    assert house.get(pool_path("shapes", "wrong")).status == 404


@pytest.mark.parametrize("path", [p for p in members(FULL) if p.endswith(("secrets[0].name", "env[0].name"))])
def test_a3_a_name_that_is_needed_is_named(house, path):
    for wrong in (None, ""):
        doc = copy.deepcopy(FULL)
        above, key = member_of(doc, path)
        above[key] = wrong
        refused = house.request("PUT", pool_path("shapes", "wrong"), doc).expect(400)
        assert path in refused.json["error"]["message"]


def test_a3_every_number_may_come_as_text_and_is_told_as_a_number(house):
    doc = copy.deepcopy(FULL)
    numbers = {}
    for path in members(FULL):
        above, key = member_of(doc, path)
        if type(above[key]) in (int, float):
            numbers[path], above[key] = above[key], str(above[key])
    assert len(numbers) >= 7
    for answer in (house.request("PUT", pool_path("texts", "numbers"), doc).expect(201),
                   house.get(pool_path("texts", "numbers")).expect(200)):
        for path, value in numbers.items():
            above, key = member_of(answer.json, path)
            assert above[key] == value and not isinstance(above[key], str), path
    patch = {"properties": {"scaleConfiguration": {"maxConcurrentSessions": "7"}}}
    shown = house.request("PATCH", pool_path("texts", "numbers"), patch).expect(200).json
    assert shown["properties"]["scaleConfiguration"]["maxConcurrentSessions"] == 7
    house.request("DELETE", pool_path("texts", "numbers")).expect(204)


@pytest.mark.parametrize("change, said", [
    ({"outputs": {"a": {"type": "string", "value": "[uniqueThing('x')]"}}}, "uniqueThing"),
    ({"outputs": {"a": {"type": "string", "value": "[reference('made').nowhere]"}}}, "nowhere"),
    ({"outputs": {"a": {"type": "string"}}}, "'a' has no value"), ({"outputs": [1]}, "outputs"),
    ({"outputs": {"a": {"type": "int", "value": "[parameters('poolName')]"}}}, "'a'"),
    ({"variables": {"x": "[variables('x')]"}, "outputs": {"a": {"type": "string", "value": "[variables('x')]"}}}, "deep"),
    ({"variables": {**{f"v{i}": "[concat(" + ",".join([f"variables('v{i + 1}')"] * 16) + ")]" for i in range(5)}, "v5": ""},
      "outputs": {"a": {"type": "string", "value": "[variables('v0')]"}}}, "too many"),
    ({"second": {"name": "Not A Name"}}, "name"), ({"second": {"name": "MADE"}}, "more than once"),
    ({"second": {"name": "two", "copy": {"name": "c", "count": 2}}}, "copy"),
    ({"second": {"name": "two", "condition": "maybe"}}, "condition"),
    ({"second": {"name": "two", "properties": {"scaleConfiguration": "x"}}}, "properties.scaleConfiguration"),
])
def test_a3_a_template_is_evaluated_before_anything_is_made(house, change, said):
    template = small()
    second = change.get("second")
    template.update({k: v for k, v in change.items() if k != "second"})
    if second:
        template["resources"].append({**copy.deepcopy(template["resources"][0]), **second})
    for method, rest in (("POST", "/validate"), ("POST", "/whatIf"), ("PUT", "")):
        answer = house.request(method, deployment("early", "One", rest), asked(template)).expect(400)
        assert said in answer.json["error"]["message"], (rest, answer.json)
    for name in ("made", "two"):
        assert house.get(pool_path("early", name)).status == 404


def test_a3_expressions_as_bicep_writes_them(house):
    template = small(env={"type": "string", "allowedValues": ["dev", "prod"]}, extra={"type": "bool", "defaultValue": False})
    first = template["resources"][0]
    first["name"] = "[toLower(format('{0}-{1}', parameters('poolName'), parameters('env')))]"
    first["properties"]["scaleConfiguration"]["maxConcurrentSessions"] = "[if(equals(parameters('env'), 'prod'), 4, 2)]"
    template["resources"].append({**copy.deepcopy(first), "name": "[format('x-{0}', uniqueString(resourceGroup().id))]",
                                  "condition": "[or(parameters('extra'), equals(parameters('env'), 'prod'))]"})
    template["outputs"] = {"made": {"type": "string", "value": "[if(empty(parameters('env')), null(), parameters('env'))]"}}
    for env, most, count in (("dev", 2, 1), ("prod", 4, 2)):
        path = deployment("bicep", env)
        made = house.request("PUT", path, asked(template, env=env, poolName="Made")).expect(201).json["properties"]
        assert made["outputs"]["made"]["value"] == env
        ids = [r["id"] for r in made["outputResources"]]
        assert len(ids) == count and ids[0].endswith(f"/made-{env}")
        pool = house.get(f"{ids[0]}?api-version={NEW}").expect(200).json["properties"]
        assert pool["scaleConfiguration"]["maxConcurrentSessions"] == most
        for each in ids:
            house.request("DELETE", f"{each}?api-version={NEW}").expect(204)


def test_a3_defaults_variables_conditions_and_references(house):
    template = small(where={"type": "string", "defaultValue": "[resourceGroup().location]"},
                     pin={"type": "securestring", "defaultValue": "hush-hush"})
    template["variables"] = {"base": "[parameters('poolName')]", "full": "[concat(variables('base'), '-x')]"}
    template["resources"][0].update(name="[variables('full')]", location="[parameters('where')]")
    template["resources"].append({**copy.deepcopy(template["resources"][0]), "name": "never", "condition": False})
    template["outputs"] = {
        "url": {"type": "string", "value": "[reference(variables('full')).poolManagementEndpoint]"},
        "most": {"type": "int", "value": "[reference(resourceId('Microsoft.App/sessionPools', variables('full')), "
                                         "'2025-10-02-preview').properties.scaleConfiguration.maxConcurrentSessions]"},
        "pin": {"type": "securestring", "value": "[parameters('pin')]"}}
    house.post(deployment("vars", "V", "/validate"), asked(template)).expect(200)
    made = house.request("PUT", deployment("vars", "V"), asked(template)).expect(201).json["properties"]
    pool = house.get(pool_path("vars", "made-x")).expect(200).json
    assert pool["location"] == "local"
    assert made["outputs"]["url"]["value"] == pool["properties"]["poolManagementEndpoint"]
    assert made["outputs"]["most"]["value"] == 3 and made["outputs"]["pin"] == {"type": "securestring"}
    assert house.get(pool_path("vars", "never")).status == 404
    assert "hush-hush" not in json.dumps(house.get(deployment("vars", "V")).json)
    house.request("DELETE", pool_path("vars", "made-x")).expect(204)
