"""Anthropic's SDK for Python. Reads base, the address of the door; key; and the commands files and plot."""

import json

import anthropic

ask = json.loads(input())
client = anthropic.Anthropic(base_url=ask["base"], api_key=ask["key"], max_retries=0)
TOOL = {"type": "code_execution_20250825", "name": "code_execution"}
BETAS = ["code-execution-2025-08-25", "files-api-2025-04-14"]


def asked(turns, *content, **more):
    """A request whose text is the model's script; content: further blocks of the user."""
    return {"model": "scripted", "max_tokens": 1024, "tools": [TOOL], "betas": BETAS, **more, "messages": [
        {"role": "user", "content": [{"type": "text", "text": json.dumps({"turns": turns})}, *content]}]}


def go(turns, *content, **more):
    return client.beta.messages.create(**asked(turns, *content, **more))


def results(message):
    return [b.content for b in message.content if b.type == "bash_code_execution_tool_result"]


def run():
    message = go([[{"text": "I count."}, {"bash": "echo $((6 * 7)); echo odd >&2; exit 3"}], [{"text": "42."}]])
    result = results(message)[0]
    return {"kinds": [b.type for b in message.content], "stop": message.stop_reason, "stdout": result.stdout,
            "stderr": result.stderr, "code": result.return_code, "container": message.container.id}


def state():
    first = go([[{"bash": "echo kept > note"}]])
    return results(go([[{"bash": "cat note"}]], container=first.container.id))[0].stdout


def files():
    sent = client.beta.files.upload(file=("in.csv", b"n\n4\n9\n", "text/csv"))
    result = results(go([[{"bash": ask["files"]}]], {"type": "container_upload", "file_id": sent.id}))[0]
    made = client.beta.files.retrieve_metadata(result.content[0].file_id)
    data = client.beta.files.download(made.id).read()
    client.beta.files.delete(made.id)
    return {"stdout": result.stdout, "name": made.filename, "data": data.hex()}


def plot():
    result = results(go([[{"bash": ask["plot"]}]]))[0]
    return client.beta.files.download(result.content[0].file_id).read()[:8].hex()


def stream():
    kinds, text = [], ""
    with client.beta.messages.stream(**asked([[{"text": "I count."}, {"bash": "echo 42"}], [{"text": "It is 42."}]])) as events:
        for event in events:
            kinds.append(event.type)
            if event.type == "content_block_delta" and event.delta.type == "text_delta":
                text += event.delta.text
        final = events.get_final_message()
    return {"kinds": sorted(set(kinds)), "text": text, "final": [b.type for b in final.content],
            "stdout": results(final)[0].stdout}


def limit():
    return results(go([[{"bash": "sleep 600"}]]))[0].error_code


def told(e):
    return {"status": e.status_code, "type": e.body["error"]["type"], "id": e.request_id}


def error():
    try:
        go([[{"bash": "true"}]], container="container_01missing")
    except anthropic.NotFoundError as e:
        return told(e)


def key():
    try:
        client.copy(api_key="wrong").models.list()
    except anthropic.AuthenticationError as e:
        return told(e)


def models():
    return [model.id for model in client.models.list()]


print(json.dumps({case.__name__: case() for case in (run, state, files, plot, stream, limit, error, key, models)}))
