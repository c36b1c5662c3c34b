"""azure-mgmt-resource: the life of a deployment. Reads base, an https address; key; subscription; name; and template."""

import json

from azure.core.credentials import AccessToken
from azure.core.exceptions import HttpResponseError
from azure.mgmt.resource.deployments import DeploymentsMgmtClient

ask = json.loads(input())


class Credential:
    def __init__(self, key):
        self.key = key

    def get_token(self, *scopes, **more):
        return AccessToken(self.key, 2**31)


def connect(key):
    return DeploymentsMgmtClient(Credential(key), ask["subscription"], base_url=ask["base"], retry_total=0)


client = connect(ask["key"])
deployments = client.deployments
GROUP, NAME = "walk", ask["name"]


def document(**parameters):
    given = {"environmentName": "env", "sessionPoolName": ask["name"], **parameters}
    return {"properties": {"mode": "Incremental", "template": ask["template"],
                           "parameters": {name: {"value": value} for name, value in given.items()}}}


def validate():
    return deployments.begin_validate(GROUP, NAME, document()).result().properties.provisioning_state


def what_if():
    return [[c.change_type, c.resource_id.rpartition("/")[2]] for c in deployments.begin_what_if(GROUP, NAME, document()).result().changes]


def create():
    made = deployments.begin_create_or_update(GROUP, NAME, document()).result()
    return {"state": made.properties.provisioning_state, "made": [r.id.rpartition("/")[2] for r in made.properties.output_resources]}


def get():
    return [deployments.get(GROUP, NAME).name, deployments.check_existence(GROUP, NAME), deployments.check_existence(GROUP, "none")]


def listed():
    return [d.name for d in deployments.list_by_resource_group(GROUP)]


def operations():
    return sorted(o.properties.provisioning_state for o in client.deployment_operations.list(GROUP, NAME))


def refused():
    try:
        deployments.begin_create_or_update(GROUP, NAME, document(cpu=17)).result()
    except HttpResponseError as e:
        return {"status": e.status_code, "code": e.error.code, "message": e.error.message}


def delete():
    deployments.begin_delete(GROUP, NAME).result()
    return deployments.check_existence(GROUP, NAME)


def key():
    try:
        list(connect("wrong").deployments.list_by_resource_group(GROUP))
    except HttpResponseError as e:
        return f"{e.status_code} {e.message}"


print(json.dumps({case.__name__: case() for case in (validate, what_if, create, get, listed, operations, refused, delete, key)}))
