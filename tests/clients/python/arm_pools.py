"""azure-mgmt-appcontainers: the life of a session pool. Reads base, an https address; key; subscription; and name."""

import json

from azure.core.credentials import AccessToken
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.mgmt.appcontainers import ContainerAppsAPIClient

ask = json.loads(input())


class Credential:
    def __init__(self, key):
        self.key = key

    def get_token(self, *scopes, **more):
        return AccessToken(self.key, 2**31)


def connect(key):
    return ContainerAppsAPIClient(Credential(key), ask["subscription"], base_url=ask["base"], retry_total=0)


client = connect(ask["key"])
pools = client.container_apps_session_pools
GROUP, NAME = "walk", ask["name"]


def document(most):
    return {"location": "westeurope", "properties": {
        "poolManagementType": "Dynamic", "containerType": "PythonLTS",
        "scaleConfiguration": {"maxConcurrentSessions": most, "readySessionInstances": 0},
        "dynamicPoolConfiguration": {"lifecycleConfiguration": {"lifecycleType": "Timed", "cooldownPeriodInSeconds": 600}},
        "sessionNetworkConfiguration": {"status": "EgressDisabled"}}}


def create():
    made = pools.begin_create_or_update(GROUP, NAME, document(5)).result()
    return {"name": made.name, "state": made.properties.provisioning_state, "endpoint": made.properties.pool_management_endpoint}


def get():
    return pools.get(GROUP, NAME).properties.scale_configuration.max_concurrent_sessions


def update():
    pools.begin_update(GROUP, NAME, {"properties": {"scaleConfiguration": {"maxConcurrentSessions": 7}}}).result()
    return get()


def listed():
    return [[p.name for p in pools.list_by_resource_group(GROUP)], [p.name for p in pools.list_by_subscription()]]


def refused():
    try:
        pools.begin_create_or_update(GROUP, NAME, document(-1)).result()
    except HttpResponseError as e:
        return {"status": e.status_code, "code": e.error.code, "message": e.error.message}


def delete():
    pools.begin_delete(GROUP, NAME).result()
    try:
        pools.get(GROUP, NAME)
    except ResourceNotFoundError as e:
        return e.error.code


def key():
    try:
        list(connect("wrong").container_apps_session_pools.list_by_resource_group(GROUP))
    except HttpResponseError as e:
        return f"{e.status_code} {e.message}"


print(json.dumps({case.__name__: case() for case in (create, get, update, listed, refused, delete, key)}))
