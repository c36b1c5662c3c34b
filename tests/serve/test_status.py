"""/v1/status: who asks, and how the server does."""

import pytest

pytestmark = pytest.mark.once


def test_figures(session, client):
    before = client.get("/v1/status").expect(200).json
    assert (before["tenant"], before["key"], before["admin"], before["keys_needed"]) == ("local", None, True, False)
    session.run("1")
    session.run("1 / 0")
    after = client.get("/v1/status").expect(200).json
    assert after["executions"]["ok"] == before["executions"]["ok"] + 1
    assert after["executions"]["raised"] == before["executions"]["raised"] + 1
    cells = after["cell_seconds"]
    assert cells["count"] == before["cell_seconds"]["count"] + 2 == sum(b["count"] for b in cells["buckets"])
    bounds = [b["le"] for b in cells["buckets"]]
    assert bounds[-1] is None and bounds[:-1] == sorted(bounds[:-1])
    assert sum(after["sessions"].values()) >= 1
    memory = after["memory"]
    assert 1 << 20 < memory["server_bytes"] < memory["host_total_bytes"] > memory["host_used_bytes"] > 0


def test_who_asks(server, client):
    made = client.post("/v1/keys", {"tenant": "local", "admin": True}).expect(201).json
    try:
        with server.client(key=made["secret"]) as admin:
            assert admin.get("/v1/status").expect(200).json["key"] == made["id"]
            reader = admin.post("/v1/keys", {"tenant": "acme", "read_only": True}).expect(201).json
            with server.client(key=reader["secret"]) as c:
                found = c.get("/v1/status").expect(200).json
            assert (found["tenant"], found["admin"], found["approver"], found["read_only"]) == ("acme", False, False, True)
            assert found["keys_needed"]
        assert client.get("/v1/status").status == 401
    finally:
        server.stop()
