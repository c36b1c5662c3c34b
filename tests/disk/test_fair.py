"""What one session writes keeps nobody else waiting: here it never reaches the disk, for as long as the
test likes."""

import shutil
import threading

import pytest

from disk import Disk, make_image
from support import retort
from support.faults import Faults
from support.server import folder

FLAGS = ["--retention", "1h", "--log-level", "warn"]
MANY = """
for i in range(1000):
    with open(f"{i}.txt", "w") as f:
        f.write(str(i))
"""


@pytest.fixture
def place():
    one = folder()
    yield one
    shutil.rmtree(one)


@pytest.mark.timeout(300)
def test_many_files_reach_the_disk_before_they_count(place):
    """So there is never much that the disk has to do at once. The others go on meanwhile."""
    image, faults, records = make_image(place / "disk"), Faults(place), []
    with Disk(*FLAGS, image=image, env=faults.env) as server, server.client() as client:
        writer = server.client().session()
        thread = threading.Thread(target=lambda: records.append(writer.run(MANY)), daemon=True)
        faults.hold_syncs(server.state, but="/")
        try:
            thread.start()
            retort.wait_until(lambda: faults.held() > 0, "the files wait for the disk", retort.SECONDS)
            session = client.session()
            assert session.run("open('one', 'w').write('1'); print(2)")["stdout"] == "2\n"
            assert client.get(session.file("one")).expect(200).body == b"1"
            assert client.get(session.path + "/files").expect(200).json["data"]
            assert not records
        finally:
            faults.let_syncs_go()
        thread.join(retort.SECONDS)
        assert records[0]["status"] == "ok"
        assert client.get(writer.file("999.txt")).expect(200).body == b"999"
