#!/usr/bin/env python3
"""Measures servers that share a PostgreSQL and a bucket, all on this machine.

    nodes.py [--seconds N] [--clients N] [--build DIR] [--out FILE]

A request through another node than its tenant's, beside the same at home: a session is read, and a cell runs. Then
cells a second of CLIENTS sessions on one server with SQLite, and on 1, 2 and 3 nodes with a tenant for each; clients
ask their tenant's own node. On one machine the nodes share its processors and one disk: what this shows is what a
node costs, not how many machines scale.
"""

import argparse
import contextlib
import json
import os
import pathlib
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))


def middle(times):
    times = sorted(times)
    return {"p50": round(times[len(times) // 2], 3), "p99": round(times[len(times) * 99 // 100], 3)}


def timed(call):
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


def forwarded(nodes, key, count):
    """In turns, so that both meet the same machine."""
    with nodes[0].client(key) as home, nodes[1].client(key) as other:
        path = home.session().path
        asks = {
            "read": lambda client: client.get(path).expect(200),
            "cell": lambda client: client.post(path + "/execute", {"code": "1"}).expect(200),
        }
        found = {}
        for name, ask in asks.items():
            times = {"home": [], "forwarded": []}
            for _ in range(count):
                times["home"].append(timed(lambda ask=ask: ask(home)))
                times["forwarded"].append(timed(lambda ask=ask: ask(other)))
            found[name] = {where: middle(some) for where, some in times.items()}
        return found


def cells(places, clients, seconds):
    """places: (server, key) of each tenant."""
    times, lock, over = [], threading.Lock(), threading.Event()

    def work(server, key):
        own = []
        with server.client(key) as client:
            session = client.session()
            while not over.is_set():
                own.append(timed(lambda: session.run("1")))
            client.delete(session.path)
        with lock:
            times.extend(own)

    threads = [threading.Thread(target=work, args=places[i % len(places)]) for i in range(clients)]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    over.set()
    for thread in threads:
        thread.join()
    return {"a_second": round(len(times) / seconds), **middle(times)}


def measure(args):
    from support import s3
    from support.nodes import Nodes
    from support.postgres import Postgres
    from support.server import Server

    found = {}
    with contextlib.ExitStack() as stack:
        with Server() as alone:
            found["SQLite"] = cells([(alone, None)], args.clients, args.seconds)
        postgres, blobs = stack.enter_context(Postgres(fsync="on")), stack.enter_context(s3.S3())
        for count in 1, 2, 3:
            nodes = Nodes(postgres, blobs, count, lease=30)
            keys = [nodes.key(f"tenant{i}") for i in range(count)]
            with nodes:
                for node, key in zip(nodes.servers, keys):
                    with node.client(key) as client:
                        client.get("/v1/sessions").expect(200)
                if count == 2:
                    found["forwarded"] = forwarded(nodes, keys[0], 500)
                found[f"{count} nodes"] = cells(list(zip(nodes.servers, keys)), args.clients, args.seconds)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()
    os.environ["RETORT_BIN"] = str(args.build / "retort")
    found = measure(args)
    (args.out or args.build / "bench-nodes.json").write_text(json.dumps(found, indent=1) + "\n")
    for ask, where in found["forwarded"].items():
        print(f"{ask:>8}, ms  at home {where['home']}, forwarded {where['forwarded']}")
    for name in "SQLite", "1 nodes", "2 nodes", "3 nodes":
        print(f"{name:>8}  {found[name]['a_second']:6} cells a second, ms: p50 {found[name]['p50']}, p99 {found[name]['p99']}")


if __name__ == "__main__":
    main()
