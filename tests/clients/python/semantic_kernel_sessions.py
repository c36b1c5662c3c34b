"""Semantic Kernel's SessionsPythonTool, called through a kernel as an agent does. Reads pool, an https address, and key."""

import asyncio
import json
import re
from pathlib import Path

from semantic_kernel import Kernel
from semantic_kernel.core_plugins.sessions_python_tool.sessions_python_plugin import SessionsPythonTool

ask = json.loads(input())
PARTS = re.compile(r"Status:\n(.*?)\nResult:\n(.*?)\nStdout:\n(.*?)\nStderr:\n(.*)", re.S)


def sessions(key):
    return SessionsPythonTool(auth_callback=lambda: key, pool_management_endpoint=ask["pool"],
                              enable_dangerous_file_uploads=True, allowed_upload_directories=["."])


async def main():
    kernel = Kernel()
    tool = sessions(ask["key"])
    kernel.add_plugin(tool, "sessions")

    async def execute(code):
        done = await kernel.invoke(plugin_name="sessions", function_name="execute_code", code=code)
        return dict(zip(("status", "result", "stdout", "stderr"), PARTS.fullmatch(str(done.value)).groups()))

    seen = {"run": await execute("print('counting')\n6 * 7")}
    seen["run"]["result"] = json.loads(seen["run"]["result"])
    await execute("kept = [5, 7]")
    seen["state"] = json.loads((await execute("sum(kept)"))["result"])
    # Put into the text as Python shows a dictionary.
    seen["plot"] = re.search(r"'base64_data': '([^']*)'", (await execute(ask["plot"]))["result"])[1]
    Path("in.csv").write_text("n\n4\n9\n")
    sent = await tool.upload_file(local_file_path="in.csv")
    await execute(ask["use"])
    await tool.download_file(remote_file_name="out.txt", local_file_path="out.txt")
    seen["files"] = {"listed": [f.filename for f in await tool.list_files()], "read": Path("out.txt").read_text(),
                     "sent": [sent.filename, sent.size_in_bytes]}
    seen["error"] = (await execute("1 / 0"))["stderr"]
    try:
        seen["key"] = str(await sessions("wrong").execute_code("1"))
    except Exception as e:
        seen["key"] = f"{e!r}: {e.__cause__!r}"
    print(json.dumps(seen))


asyncio.run(main())
