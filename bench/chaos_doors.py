"""Clients of each door that append words to files by running code, and remember what they were told.

A door says what its request is and whether an answer tells that the code has run. What has run prints the word
backwards, which nothing else in an answer does.
"""

import json
import re
import secrets

WORD = re.compile(r"have:([0-9a-f,]*);twice:([0-9a-f,]*);")
IN_ONE = 100  # words in a file: all of them are printed, and long lines are cut
UNSAVED = "could not be saved yet"  # every door passes it on
ACCEPT = {"Accept": "application/json, text/event-stream"}
MODERN = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {}}}


class Refused(Exception):
    """An answer that is none: to come back later, or that nothing is known."""


class Door:
    """run(code): what came of it, as text. What it needs first is made by begin(), which may be tried again."""

    keeps = True  # files, from one call to the next

    def __init__(self, ask, number):
        self.ask, self.number, self.begun = ask, number, False

    def begin(self):
        pass

    def ready(self):
        if not self.begun:
            self.begin()
            self.begun = True

    def append(self, word, file):
        """Whether it was said to have run, and then whether its files were said to be safe."""
        said = self.run(f"with open('{file}', 'a') as f: _ = f.write('{word}\\n')\nprint('{word}'[::-1])")
        return word[::-1] in said, UNSAVED not in said

    def read(self, file):
        """The words of a file, and those that are there more than once."""
        said = self.run(f"words = open('{file}').read().split()\n"
                        "print('have:' + ','.join(words) + ';twice:'"
                        " + ','.join(w for w in set(words) if words.count(w) > 1) + ';')")
        found = WORD.search(said)
        if not found:
            raise Refused(said[-1500:])
        return tuple({w for w in words.split(",") if w} for words in found.groups())

    def post(self, path, body, headers=None):
        return self.ask("POST", path, body, headers or {})


class Rest(Door):
    def begin(self):
        self.path = "/v1/sessions/" + json.loads(self.post("/v1/sessions", {"name": f"s{self.number}"}))["id"]

    def run(self, code):
        return self.post(self.path + "/execute", {"code": code})


class Azure(Door):
    def run(self, code):
        return self.post(f"/azure/pools/default/code/execute?identifier=chaos-{self.number}",
                         {"properties": {"code": code}})


class Qwen(Door):
    def run(self, code):
        return self.post(f"/qwen/code_interpreter?instance=chaos-{self.number}", {"code": code})


class Prisme(Door):
    keeps = False

    def run(self, code):
        return self.post("/prisme/execute_python", {"code": code})


class Ubik(Door):
    ROOT = "/ubik/api/v1"
    sandbox = None

    def run(self, code):
        inputs = {"code": code, **({"sandbox_id": self.sandbox} if self.sandbox else {})}
        made = json.loads(self.post(f"{self.ROOT}/tools/python_interpreter/execute", {"inputs": inputs}))
        return self.wait(made["execution_id"])

    def begin(self):
        self.sandbox = json.loads(self.run("1"))["outputs"]["sandbox_id"]

    def wait(self, execution):
        """The other end holds each question for a moment: a few are enough."""
        path = f"{self.ROOT}/tool-executions/{execution}"
        for _ in range(400):
            said = self.ask("GET", path, None, {})
            if json.loads(said)["status"] in ("completed", "failed"):
                return said
            self.ask.rest(0.02)
        raise Refused("it goes on and on")


class Mcp(Door):
    def call(self, tool, **arguments):
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": tool, "arguments": arguments, **MODERN}}
        return self.post("/mcp", body, {**ACCEPT, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call",
                                        "Mcp-Name": tool})

    def begin(self):
        self.session = re.search(r"sess_[a-z0-9]+", self.call("create_session"))[0]

    def run(self, code):
        return self.call("run_code", session_id=self.session, code=code)


class Anthropic(Door):
    container = None

    def run(self, code):
        turns = [[{"tool": {"name": "code_execution", "input": {"code": code}}}], [{"text": "done"}]]
        body = {"model": "any", "max_tokens": 1000,
                "tools": [{"type": "code_execution_20250522", "name": "code_execution"}],
                "messages": [{"role": "user", "content": json.dumps({"turns": turns})}],
                **({"container": self.container} if self.container else {})}
        said = self.post("/anthropic/v1/messages", body, {"anthropic-version": "2023-06-01",
                                                          "anthropic-beta": "code-execution-2025-05-22"})
        self.made = (json.loads(said).get("container") or {}).get("id")
        return said

    def begin(self):
        self.run("1")
        if not self.made:
            raise Refused("no container")
        self.container = self.made


DOORS = {"rest": Rest, "azure": Azure, "qwen": Qwen, "prisme": Prisme, "ubik": Ubik, "mcp": Mcp,
         "anthropic": Anthropic}


class Words:
    """Appends words through a door. tried: every word and its file; told: those that an answer vouches for."""

    def __init__(self, door):
        self.door = door
        self.tried, self.ran, self.kept = {}, set(), set()

    def work(self):
        self.door.ready()
        word, file = secrets.token_hex(8), f"words-{len(self.tried) // IN_ONE}"
        self.tried[word] = file
        ran, kept = self.door.append(word, file)
        if ran:
            self.ran.add(word)
        if ran and kept:
            self.kept.add(word)
        return ran

    def judge(self):
        """What files do not have although it was said, what they have too often, and what is old in them."""
        lost, twice = set(), set()
        for file in sorted(set(self.tried.values())) if self.door.keeps else []:
            said = {w for w in self.kept if self.tried[w] == file}
            if not said:
                continue
            have, more = self.door.read(file)
            lost |= said - have
            twice |= more
        return lost, twice, set()


class Uploads:
    """Files of the tenant: each is there as it was sent, or gone as it was told."""

    MOST = 50

    def __init__(self, ask):
        self.ask = ask
        self.kept, self.deleted = {}, set()
        self.ran = []  # for the count

    def work(self):
        data = secrets.token_hex(secrets.randbelow(2000) + 1)
        said = self.ask.form("/v1/files", ("file", "f", data.encode()))
        self.kept[json.loads(said)["id"]] = data
        self.ran.append(1)
        if len(self.kept) > self.MOST:
            one = secrets.choice([*self.kept])
            del self.kept[one]  # whether it is there is not known until the answer has come
            self.ask("DELETE", f"/v1/files/{one}", None, {})
            self.deleted.add(one)
        return True

    def judge(self):
        lost = {one for one, data in self.kept.items() if self.ask("GET", f"/v1/files/{one}/content", None, {},
                                                                  missing="") != data}
        back = {one for one in self.deleted if self.ask("GET", f"/v1/files/{one}", None, {}, missing=None)}
        return lost, set(), back


class Register:
    """One file with a number that only grows: what is read is never older than what was written. A write without an
    answer may still come about, but not once its node has been taken over from."""

    def __init__(self, ask, number, patience):
        self.ask, self.number, self.patience, self.path = ask, number, patience, None
        self.last = self.told = 0
        self.unknown = {}  # writes without an answer: number to when
        self.stale, self.ran = [], []

    def work(self):
        if not self.path:
            made = json.loads(self.ask("POST", "/v1/sessions", {"name": f"register{self.number}"}, {}))["id"]
            self.path = f"/v1/sessions/{made}/files/register"
        self.last += 1
        self.unknown[self.last] = self.ask.now()
        self.ask("PUT", self.path, str(self.last).encode(), {})
        del self.unknown[self.last]
        self.told = self.last
        self.ran.append(1)
        self.look()
        return True

    def look(self):
        found = int(self.ask("GET", self.path, None, {}, missing="0"))
        late = found in self.unknown and self.ask.now() - self.unknown[found] < self.patience
        if found < self.told and not late:
            self.stale.append(f"{found} after {self.told}")

    def judge(self):
        self.look()
        return (), (), self.stale
