"""What the suites share.

retort        the program on the command line, its processes, its C drivers
server        `retort serve`: starts it, talks HTTP to it, looks at what it leaves behind
mcp, stdio    clients of MCP, over HTTP and on the pipes of `retort mcp`
model_server  a language model on loopback that plays scripts and misbehaves on command
script        requests that are their own script, for servers with `--model-script -`
web, shelf    web servers on loopback: exact bytes for hostile ones, files for the rest

tests/conftest.py has the fixtures. What one suite alone uses stays in that suite's folder.
"""
