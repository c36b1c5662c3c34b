"""langchain-azure-dynamic-sessions. Reads pool, a pool's management endpoint, and key."""

import io
import json

from langchain_azure_dynamic_sessions import SessionsPythonREPLTool

ask = json.loads(input())
tool = SessionsPythonREPLTool(pool_management_endpoint=ask["pool"], access_token_provider=lambda: ask["key"])


def run():
    return json.loads(tool.invoke("print('counting')\n6 * 7"))


def state():
    tool.invoke("kept = [5, 7]")
    return json.loads(tool.invoke("sum(kept)"))["result"]


def plot():
    return tool.execute(ask["plot"])["result"]["base64_data"]


def files():
    tool.upload_file(data=io.BytesIO(b"n\n4\n9\n"), remote_file_path="in.csv")
    tool.invoke(ask["use"])
    return {"listed": [f.filename for f in tool.list_files()],
            "read": tool.download_file(remote_file_path="out.txt").read().decode()}


def error():
    return json.loads(tool.invoke("1 / 0"))["stderr"]


def tool_call():
    """As an agent calls it: the image goes beside the text, not into it."""
    message = tool.invoke({"args": {"python_code": ask["plot"]}, "id": "1", "name": tool.name, "type": "tool_call"})
    return {"content": message.content, "artifact": message.artifact["result"]["format"]}


def end():
    tool.invoke("open('left', 'w').close()")
    tool.delete_session()
    return [f.filename for f in tool.list_files()]


def key():
    stranger = SessionsPythonREPLTool(pool_management_endpoint=ask["pool"], access_token_provider=lambda: "wrong")
    try:
        return stranger.invoke("1")
    except Exception as e:
        return repr(e)


print(json.dumps({case.__name__: case() for case in (run, state, plot, files, error, tool_call, end, key)}))
