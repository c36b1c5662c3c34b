"""What a session keeps while it sleeps besides the files of its workspace: its home, /tmp; links and
folders, with their modes and times. And what it says when some of that is gone."""

import json

import pytest

from support import retort
from support.server import Server

CONFIG = """
home-size = 1M

[pool main]
ready = 0
idle-timeout = 1
"""

# What code can make, by the way it is made; `kept` tells what must be the same afterwards.
MAKE = r"""
import os, socket
os.umask(0o022)
home = os.environ['HOME']
os.makedirs(home + '/.config/tool/deep')
open(home + '/.config/tool/rc', 'w').write('colour = red\n')
open('/tmp/plain', 'wb').write(bytes(range(256)) * 300)
open('/tmp/empty', 'w').close()
open('/tmp/name with \n blank and \udcff byte', 'w').write('odd')
with open('/tmp/holes', 'wb') as f:
    f.seek(40_000_000); f.write(b'end')
open('/tmp/tool.sh', 'w').write('#!/bin/sh\necho ran\n'); os.chmod('/tmp/tool.sh', 0o750)
os.symlink('/workspace/data/a.txt', '/tmp/to-workspace')
os.symlink('/etc/shadow', '/tmp/dangling')
os.makedirs('data/empty/folder'); open('data/a.txt', 'w').write('a')
os.symlink('data/a.txt', 'link'); os.symlink('data', 'folder-link'); os.symlink('../nowhere', 'lost')
os.makedirs('sealed/in'); open('sealed/in/f', 'w').write('f')
os.utime('data/empty', (1, 86400)); os.utime('/tmp/plain', (1, 1_000_000_000))
os.utime('link', (1, 1_100_000_000), follow_symlinks=False)
os.chmod('data/empty', 0o700); os.chmod('sealed/in', 0o555); os.utime('sealed', (1, 1_200_000_000)); os.chmod('sealed', 0o555)
os.mkfifo('/tmp/fifo'); socket.socket(socket.AF_UNIX).bind('/tmp/socket')
os.makedirs('/tmp/lib/__pycache__'); open('/tmp/lib/__pycache__/x.pyc', 'w').write('x')
"""

# The whole of it, as a person would look at it.
LOOK = r"""
import hashlib, json, os, stat
def look():
    seen = {}
    for top in ('/tmp', '/workspace'):
        for folder, names, files in os.walk(top):
            for name in names + files:
                path = os.path.join(folder, name); st = os.lstat(path); kind = stat.S_IFMT(st.st_mode)
                what = os.readlink(path) if kind == stat.S_IFLNK else None
                if kind == stat.S_IFREG:
                    what = hashlib.sha256(open(path, 'rb').read()).hexdigest()
                seen[os.fsencode(path).hex()] = [kind, stat.S_IMODE(st.st_mode), int(st.st_mtime), what, st.st_uid]
    return seen
print(json.dumps(look()))
"""


def paths(seen):
    return {bytes.fromhex(p).decode(errors="surrogateescape"): v for p, v in seen.items()}


def look(session):
    return paths(json.loads(session.run(LOOK)["stdout"].splitlines()[-1]))


def notes(done):
    return [e["text"] for e in done["events"] if e["type"] == "status"]


def sleep(client, session):
    retort.wait_until(lambda: client.get(session.path).json["state"] == "asleep", "the session to sleep")


@pytest.fixture(scope="module")
def house():
    with Server(config=CONFIG) as server:
        yield server


def test_everything_that_is_a_file_is_kept(house):
    with house.client() as c, c.session() as s:
        s.run(MAKE)
        before = look(s)
        for _ in range(2):  # the second sleep keeps what the first has put back
            sleep(c, s)
            done = s.run("print('home' in globals())")
            assert done["stdout"] == "False\n"
            assert notes(done) == ["the sandbox was started anew: variables and processes are gone, files are kept"]
            after = look(s)
            gone = set(before) - set(after)
            assert gone == {"/tmp/fifo", "/tmp/socket", "/tmp/lib/__pycache__", "/tmp/lib/__pycache__/x.pyc"}
            assert set(after) - set(before) == set()
            assert {p: v for p, v in before.items() if p not in gone} == after
        # The hole is still one, and the program still runs.
        done = s.run("import os, subprocess; print(os.stat('/tmp/holes').st_blocks < 100,"
                     " subprocess.check_output(['/tmp/tool.sh']))")
        assert done["stdout"] == "True b'ran\\n'\n"


def test_what_a_client_puts_meanwhile_wins(house):
    with house.client() as c, c.session() as s:
        s.run("import os; os.symlink('/tmp', 'link'); os.makedirs('folder')")
        sleep(c, s)
        s.put("link", b"a file now")
        s.put("folder/x", b"x")
        done = s.run("import os; print(open('link').read(), os.path.islink('link'), os.listdir('folder'))")
        assert done["stdout"] == "a file now False ['x']\n"


def test_what_is_deleted_stays_deleted(house):
    with house.client() as c, c.session() as s:
        s.run("import os; open('/tmp/a', 'w').write('1'); open('/tmp/b', 'w').write('2'); os.mkdir('d')")
        sleep(c, s)
        s.run("import os; os.remove('/tmp/a'); os.rmdir('d'); open('/tmp/b', 'w').write('new')")
        sleep(c, s)
        done = s.run("import os; print([n for n in os.listdir('/tmp') if n[0] != '.'], open('/tmp/b').read(), os.listdir('.'))")
        assert done["stdout"] == "['b'] new []\n"


def test_what_is_too_much_is_left_out_and_told(house):
    with house.client() as c, c.session() as s:
        s.run("open('/tmp/large', 'wb').write(b'x' * 3_000_000); open('/tmp/small', 'w').write('kept')")
        sleep(c, s)
        done = s.run("import os; print([n for n in os.listdir('/tmp') if n[0] != '.'])")
        assert done["stdout"] == "['small']\n"
        assert len(notes(done)) == 2
        assert notes(done)[1] == ("in /tmp, or among links and folders, 1 could not be kept: unreadable, or "
                                  "more than the setting home-size")


def test_links_lead_nowhere_outside(house):
    """They are made again as they were, inside; the server follows none of them."""
    with house.client() as c, c.session() as s:
        s.run("import os; os.symlink('/proc/1/root', 'out'); os.symlink('../../etc', '/tmp/up')")
        sleep(c, s)
        done = s.run("import os; print(os.readlink('out'), os.readlink('/tmp/up'))")
        assert done["stdout"] == "/proc/1/root ../../etc\n"
        assert s.files() == {}


def test_a_clean_end_of_the_server_keeps_it_and_kill_tells(tmp_path):
    server = Server(config="[pool main]\nready = 0\n")
    with server:
        c = server.client()
        s = c.session()
        s.run("import os; open('/tmp/a', 'w').write('first'); os.symlink('/tmp/a', 'l')")
        server.stop()
        server.start()
        c = server.client()
        done = c.post(s.path + "/execute", {"code": "print(open('l').read())"}).expect(200).json
        assert done["stdout"] == "first\n" and len(notes(done)) == 1 and "files are kept" in notes(done)[0]
        c.post(s.path + "/execute", {"code": "open('/tmp/a', 'w').write('second'); open('w', 'w').write('w')"})
        server.kill()
        server.start()
        c = server.client()
        done = c.post(s.path + "/execute", {"code": "print(open('l').read(), open('w').read())"}).expect(200).json
        assert done["stdout"] == "first w\n"
        assert len(notes(done)) == 1 and "as they were when the session last slept" in notes(done)[0]


INSTALL = r"""
import zipfile
with zipfile.ZipFile("kept_thing-1.0-py3-none-any.whl", "w") as z:
    z.writestr("kept_thing.py", "def main():\n    print('its script')\n\n\nnumber = 11\n")
    info = "kept_thing-1.0.dist-info/"
    z.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: kept-thing\nVersion: 1.0\n")
    z.writestr(info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr(info + "entry_points.txt", "[console_scripts]\nkept-thing = kept_thing:main\n")
    z.writestr(info + "RECORD", "")
!pip install -q ./kept_thing-1.0-py3-none-any.whl
import kept_thing
kept_thing.number
"""
USE = "import kept_thing\n!kept-thing\nkept_thing.number"


def test_what_pip_installs_outlives_sleep_and_a_restart():
    with Server(config="[pool main]\nready = 0\npreload =\nidle-timeout = 1\n") as server:
        c = server.client()
        s = c.session()
        done = s.run(INSTALL)
        assert done["result"] == "11", done
        for again in (lambda: sleep(c, s), lambda: (server.stop(), server.start())):
            again()
            c = server.client()
            done = c.post(s.path + "/execute", {"code": USE}).expect(200).json
            assert done["result"] == "11" and done["stdout"] == "its script\n", done
            assert len(notes(done)) == 1
