"""The clock is set forward: what is kept for some time is kept for that time, and not for less."""

import pytest

from support import retort
from support.faults import Faults
from support.server import Server, folder

pytestmark = pytest.mark.once

YEAR = 365 * 86400


@pytest.fixture
def faults():
    return Faults(folder())


def sweeps(client):
    lines = client.get("/metrics").expect(200).text.splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("retort_sweeps_total "))


def wait_for_sweep(client):
    before = sweeps(client)
    retort.wait_until(lambda: sweeps(client) > before, "a look at what has run out", retort.SECONDS)


def test_what_a_clock_that_is_set_forward_leaves_alone(faults):
    """Sessions with their files, records, uploads; also after a restart
    with the clock still wrong."""
    with Server("--retention", "10m", "--records", "1h", env=faults.env) as server, server.client() as client:
        session = client.session()
        done = session.run("open('kept.txt', 'w').write('kept')\nprint('on record')")
        upload = client.form("/v1/files", ("file", "f.txt", b"uploaded")).expect(201).json

        def look():
            assert client.get("/v1/executions/" + done["id"]).expect(200).json["stdout"] == "on record\n"
            assert client.get(session.file("kept.txt")).expect(200).body == b"kept"
            assert client.get(f"/v1/files/{upload['id']}/content").expect(200).body == b"uploaded"
            assert upload["id"] in [f["id"] for f in client.all("/v1/files")]

        faults.set_clock(YEAR)
        wait_for_sweep(client)
        look()
        for ends, ahead in ((server.stop, YEAR), (server.kill, YEAR), (server.stop, 0)):
            ends()
            faults.set_clock(ahead)
            client.close()
            server.start()
            retort.wait_until(lambda: sweeps(client) > 0, "a look at what has run out", retort.SECONDS)
            look()
        assert "ahead of what it was" in server.log(1 << 20)


def test_a_key_ends_by_the_clock_as_it_stands(faults):
    """Nothing is deleted by that: with the right time it works again."""
    with Server(env=faults.env) as server:
        with server.client() as first:
            admin = first.post("/v1/keys", {"tenant": "ops", "admin": True}).expect(201).json["secret"]
        with server.client(admin) as client:
            key = client.post("/v1/keys", {"tenant": "acme", "expires_in": 3600}).expect(201).json["secret"]
            with server.client(key) as other:
                assert other.get("/v1/sessions").status == 200
                faults.set_clock(YEAR)
                assert other.get("/v1/sessions").status == 401
                faults.set_clock(0)
                assert other.get("/v1/sessions").status == 200
