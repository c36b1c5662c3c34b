"""Pools: what is there, and what it may use."""

import json

from support.server import Server

MEMBERS = {"name", "description", "python", "packages", "preload", "learned", "limits", "egress", "ready",
           "parked", "sessions", "max_sessions", "idle_timeout", "lifetime", "up", "problem"}
LIMITS = {"wall_s", "cpu_s", "cpus", "memory_bytes", "processes", "disk_bytes", "tmp_bytes",
          "open_files", "output_bytes", "artifact_count", "artifact_bytes"}
CONFIG = """
[pool main]
description = Numbers and tables
preload = json, numpy
max-sessions = 7

[pool tiny]
timeout = 2
memory = 200M
ready = 0
egress = allow-list
egress-hosts = pypi.org, *.example.com:8443
"""


def test_pools():
    with Server(config=CONFIG) as server, server.client() as c:
        listed = c.get("/v1/pools").expect(200).json
        assert [p["name"] for p in listed["data"]] == ["main", "tiny"] and listed["has_more"] is False
        main = c.get("/v1/pools/main").expect(200).json
        assert set(main) == MEMBERS and set(main["limits"]) == LIMITS
        assert main["description"] == "Numbers and tables" and main["up"] is True
        assert main["preload"] == ["json", "numpy"] and main["max_sessions"] == 7
        assert main["learned"] == []
        assert main["problem"] is None and main["egress"] == {"mode": "none", "hosts": []}

        tiny = c.get("/v1/pools/tiny").expect(200).json
        assert tiny["limits"]["wall_s"] == 2 and tiny["limits"]["memory_bytes"] == 200 * 2**20
        assert tiny["egress"] == {"mode": "allow-list", "hosts": ["pypi.org", "*.example.com:8443"]}
        assert tiny["ready"] == 0
        c.get("/v1/pools/none").refused(404)

        # What it says of itself is what the code finds.
        with c.session(pool="main") as made:
            assert made.info["pool"] == "main"
            code = ("import json, platform, re, importlib.metadata as m\n"
                    "found = {}\n"
                    "for d in m.distributions():\n"
                    "    found.setdefault(re.sub('[-_.]+', '-', d.metadata['Name']).lower(), d.version)\n"
                    "print(json.dumps([platform.python_version(), found]))")
            assert json.loads(made.run(code)["stdout"]) == [main["python"], main["packages"]]
            assert {"ipython", "numpy", "pandas"} <= main["packages"].keys()
            assert c.get("/v1/pools/main").json["sessions"] == 1
            made.run("import sys")
        with c.session(pool="tiny") as made:
            done = made.run("import time; time.sleep(30)")
            assert done["status"] == "timeout" and done["outcome"]["limits_hit"] == ["wall_time"]
        done = c.post("/v1/execute", {"code": "1", "pool": "tiny"}).expect(200).json
        assert done["pool"] == "tiny"
