"""AutoGen's code executor for dynamic sessions. Reads pool, a pool's management endpoint, and key."""

import asyncio
import json
from pathlib import Path

from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock
from autogen_ext.code_executors.azure import ACADynamicSessionsCodeExecutor
from azure.core.credentials import AccessToken

ask = json.loads(input())


class Credential:
    def __init__(self, key):
        self.key = key

    def get_token(self, *scopes, **more):
        return AccessToken(self.key, 2**31)


def halve(n: int) -> float:
    """A function that the executor hands to the session."""
    return n / 2


async def main():
    token = CancellationToken()
    tool = ACADynamicSessionsCodeExecutor(ask["pool"], Credential(ask["key"]), work_dir=".", functions=[halve])

    async def execute(*codes):
        return await tool.execute_code_blocks([CodeBlock(code=c, language="python") for c in codes], token)

    done = await execute("print('counting')\n6 * 7")
    seen = {"run": {"text": done.output, "status": done.exit_code}, "functions": (await execute("print(halve(7))")).output}
    seen["packages"] = sorted(await tool.get_available_packages(token))
    seen["state"] = (await execute("kept = [5, 7]", "print(sum(kept))")).output
    Path("in.csv").write_text("n\n4\n9\n")
    await tool.upload_files(["in.csv"], token)
    await execute(ask["use"])
    await tool.download_files(["out.txt"], token)
    seen["files"] = {"listed": await tool.get_file_list(token), "read": Path("out.txt").read_text()}
    failed = await execute("1 / 0")
    seen["error"] = failed.output if failed.exit_code else ""
    seen["plot"] = (await execute(ask["plot"])).output
    await tool.restart()
    seen["restart"] = (await execute("kept")).exit_code
    stranger = ACADynamicSessionsCodeExecutor(ask["pool"], Credential("wrong"), work_dir=".")
    try:
        seen["key"] = (await stranger.execute_code_blocks([CodeBlock(code="1", language="python")], token)).output
    except Exception as e:
        seen["key"] = f"{e!r}: {e.__cause__!r}"
    print(json.dumps(seen))


asyncio.run(main())
