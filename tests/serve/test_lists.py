"""Lists that are long, or of which few rows are wanted: others are answered while one is read."""

import sqlite3
import threading

import pytest

from support import postgres
from support.server import Server

pytestmark = pytest.mark.once  # nothing here depends on the walls

ROWS = 200_000
OWN_POSTGRES = {"id": "split_part(id, '_', 1) || '_' || lpad(i::text, 28, '0')", "name": "'n' || i"}
OWN = {"id": "printf('%s_%028d', substr(id, 1, instr(id, '_') - 1), i)", "name": "'n' || i"}


def multiply(server, table):
    """As many more rows as ROWS, like the one that is there, but for their ids and names."""
    if server.store:
        url = server.store[1]
        columns = postgres.sql(f"SELECT column_name FROM information_schema.columns WHERE table_name = '{table}'",
                               url).split()
        postgres.sql(f"INSERT INTO {table} ({', '.join(columns)}) SELECT"
                     f" {', '.join(OWN_POSTGRES.get(c, c) for c in columns)} FROM {table},"
                     f" generate_series(1, {ROWS}) AS i; ANALYZE {table}", url)
        return
    db = sqlite3.connect(server.state / "retort.db")
    columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    db.execute(f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})"
               f" INSERT INTO {table} ({', '.join(columns)})"
               f" SELECT {', '.join(OWN.get(c, c) for c in columns)} FROM {table}, n")
    db.commit()
    db.close()


@pytest.fixture(scope="module")
def server():
    with Server("--retention", "1h") as running:
        with running.client() as client:
            client.session(name="first").run("1")
        running.stop()
        multiply(running, "execs")
        multiply(running, "sessions")
        running.start()
        yield running


# What is asked for, and whether the answer is right: few of many, all the way to the end.
LISTS = {
    "/v1/executions?status=timeout&limit=100": lambda answer: answer.json["data"] == [],
    "/v1/executions?status=timeout&format=jsonl": lambda answer: answer.body == b"",
    "/ubik/api/v1/sandboxes": lambda answer: answer.json["total"] == 0,
}


@pytest.mark.parametrize("path", LISTS)
def test_another_request_answers_meanwhile(server, path):
    """Were a list read in one go, the store's thread would take no other job before its end."""
    answer = []

    def read():
        with server.client() as client:
            answer.append(client.get(path))

    with server.client() as client, client.session() as session:
        record = "/v1/executions/" + client.post(session.path + "/execute", {"code": "1"}).expect(200).json["id"]
        reader, answered = threading.Thread(target=read, daemon=True), 0
        reader.start()
        while reader.is_alive():
            client.get(record).expect(200)
            answered += reader.is_alive()
    assert LISTS[path](answer[0].expect(200)), answer[0]
    assert answered >= 2, "one list was all that the server did"
