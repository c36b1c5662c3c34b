"""The one way out of a sandbox, from inside: what clients there reach, and what nobody does."""

import ast
import base64
import hashlib
import io
import os
import re
import threading
import zipfile

import pytest
from support import retort
from support.server import together
from world import METADATA, PRIVATE, PUBLIC, PUBLIC6, World, response

CONFIG = f"""
[pool none]
description = no way out

[pool web]
egress = allow-list
egress-hosts = files.example, pypi.example, six.example, *.below.example, both.example,
    private.example, inside.example, localhost, metadata.example, nowhere.example,
    files.example:8080, localhost:8000, inside.example:8000, [{PUBLIC6}]

[pool all]
egress = allow-list
egress-hosts = *, *:8000

[pool literal]
egress = allow-list
egress-hosts = 127.0.0.1:8000, 10.0.0.0/8, 127.0.0.2:8080
"""

# What the cells of a session have at hand.
TOOLS = '''
import errno, socket, urllib.error, urllib.request

def get(url, **more):
    """Status and text of an answer, whoever gave it."""
    try:
        with urllib.request.urlopen(url, timeout=30, **more) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()

def say(text, more=b""):
    """What the proxy says to these bytes."""
    with socket.create_connection(("127.0.0.1", 3128), timeout=30) as s:
        s.sendall(text.encode() + more)
        got = b""
        while piece := s.recv(65536):
            got += piece
    return got.decode()

def connect(where):
    return say(f"CONNECT {where} HTTP/1.1\\r\\nHost: {where}\\r\\n\\r\\n")

def reach(family, address):
    """"open", or the name of the error."""
    with socket.socket(family) as s:
        s.settimeout(30)
        try:
            s.connect(address)
        except OSError as error:
            return errno.errorcode[error.errno]
    return "open"
'''


@pytest.fixture(scope="module")
def world():
    with World("--listen", "127.0.0.1:8000", config=CONFIG) as one:
        yield one


@pytest.fixture
def client(world):
    with world.client() as one:
        yield one


class Box:
    """A session of a pool, with the tools in it."""

    def __init__(self, session):
        self.session = session
        assert session.run(TOOLS)["status"] == "ok"

    def value(self, code, **more):
        done = self.session.run(code, **more)
        assert done["status"] == "ok", done
        return ast.literal_eval(done["result"])

    def shell(self, line, **more):
        done = self.session.shell(line, **more)
        assert done["status"] == "ok", done
        return done["stdout"]


@pytest.fixture
def box(client):
    with client.session(pool="web") as session:
        yield Box(session)


@pytest.fixture(params=["web", "all"])
def any_box(request, client):
    with client.session(pool=request.param) as session:
        yield Box(session)


def wait_log(world, session, line, count=1):
    """Until the log has this many lines of the session that match: they are told when all is over."""
    pattern, prefix = re.compile(line), f"session {session.id}: egress: "

    def matching():
        return [line for line in world.lines(prefix) if pattern.fullmatch(line[len(prefix):])]

    retort.wait_until(lambda: len(matching()) >= count, f"{count} of {line}")
    assert len(matching()) == count, matching()


# --- what works ---


PROXY = "http://127.0.0.1:3128"
VARIABLES = {"http_proxy": PROXY, "https_proxy": PROXY, "all_proxy": PROXY,
             "no_proxy": "localhost,127.0.0.1,::1"}
VARIABLES |= {name.upper(): value for name, value in VARIABLES.items()}
SHOW_CELL = "import os; {k: v for k, v in os.environ.items() if k.lower().endswith('_proxy')}"
SHOW_SHELL = "env | grep -i _proxy= | sort"


def as_lines(variables):
    return "".join(sorted(f"{name}={value}\n" for name, value in variables.items()))


def sorted_lines(text):
    return "".join(sorted(text.splitlines(True)))


def test_variables_are_set(box):
    assert box.value(SHOW_CELL) == VARIABLES
    assert sorted_lines(box.shell(SHOW_SHELL)) == as_lines(VARIABLES)
    child = box.value(f"import subprocess; subprocess.getoutput({SHOW_SHELL!r}) + '\\n'")
    assert sorted_lines(child) == as_lines(VARIABLES)


def test_the_clients_own_variables_win(client):
    own = {"HTTPS_PROXY": "http://own:1", "no_proxy": "*"}
    want = {k: v for k, v in VARIABLES.items() if k.lower() not in ("https_proxy", "no_proxy")} | own
    with client.session(pool="web", env={"HTTPS_PROXY": "http://own:1"}) as session:
        box = Box(session)
        assert box.value(SHOW_CELL, env={"no_proxy": "*"}) == want
        assert sorted_lines(box.shell(SHOW_SHELL, env={"no_proxy": "*"})) == as_lines(want)


def test_variables_are_not_on_record(client, box):
    done = box.session.run("1")
    assert "proxy" not in client.get("/v1/executions/" + done["id"]).expect(200).text


def test_urllib(world, box):
    world.site.put("/urllib?q=1", b"from the site")
    assert box.value("get('http://files.example/urllib?q=1')") == (200, "from the site")
    head = world.site.heads[-1].decode()
    assert head.startswith("GET /urllib?q=1 HTTP/1.1\r\nHost: files.example\r\nConnection: close\r\n")
    wait_log(world, box.session, r"GET files.example:80 200 up 0 down \d+")


def test_https(world, box):
    box.session.put("ca.pem", world.ca.read_bytes())
    world.tls_site.put("/s", b"over TLS")
    code = "import ssl; get('https://files.example/s', context=ssl.create_default_context(cafile='ca.pem'))"
    assert box.value(code) == (200, "over TLS")
    assert b"Host: files.example\r\n" in world.tls_site.heads[-1]
    wait_log(world, box.session, r"CONNECT files.example:443 200 up \d+ down \d+")


def test_requests(world, box):
    box.session.put("ca.pem", world.ca.read_bytes())
    world.tls_site.put("/r", b"over TLS")
    world.site.put("/r", b"plain")
    code = """
import requests
[requests.get('http://files.example/r').text, requests.get('https://files.example/r', verify='ca.pem').text,
 requests.get('http://other.example/').status_code, requests.get('http://other.example/').text]
"""
    assert box.value(code) == ["plain", "over TLS", 403,
                               "other.example:80 is not in the allow-list of this pool\n"]
    code = """
import requests
try:
    requests.get('https://other.example/', verify='ca.pem')
except requests.exceptions.ProxyError as error:
    said = str(error)
said
"""
    assert "403 other.example:443 is not in the allow-list of this pool" in box.value(code)


def test_requests_by_post(world, box):
    got = []

    def take(conn, head):
        body = head.partition(b"\r\n\r\n")[2]
        while len(body) < 300_000:
            body += conn.recv(65536)
        got.append(body)
        conn.sendall(response(200, b"thanks"))

    world.site.put("/post", take)
    code = "import requests; requests.post('http://files.example/post', data=b'ab' * 150_000).text"
    assert box.value(code) == "thanks"
    assert got == [b"ab" * 150_000]
    wait_log(world, box.session, r"POST files.example:80 200 up 300000 down \d+")


def test_curl(world, box):
    box.session.put("ca.pem", world.ca.read_bytes())
    world.site.put("/c", b"plain\n")
    world.tls_site.put("/c", b"over TLS\n")
    world.odd.put("/c", b"another port\n")
    assert box.shell("curl -sS http://files.example/c; curl -sS --cacert ca.pem https://files.example/c; "
                     "curl -sS http://files.example:8080/c") == "plain\nover TLS\nanother port\n"
    assert box.shell("curl -s http://other.example/; curl -s -o /dev/null -w '%{http_connect}' https://other.example/ "
                     "|| true") == "other.example:80 is not in the allow-list of this pool\n403"


def wheel():
    """A package of one module."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as z:
        files = {"tiny_thing.py": b"answer = 42\n",
                 "tiny_thing-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: tiny-thing\nVersion: 1.0\n",
                 "tiny_thing-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\n"
                                                   b"Root-Is-Purelib: true\nTag: py3-none-any\n"}
        record = ""
        for name, data in files.items():
            z.writestr(name, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(data)}\n"
        z.writestr("tiny_thing-1.0.dist-info/RECORD", record + "tiny_thing-1.0.dist-info/RECORD,,\n")
    return made.getvalue()


def put_wheel(world):
    """The index has the package: the name of its file, and the bytes."""
    data = wheel()
    name = "tiny_thing-1.0-py3-none-any.whl"
    page = f'<a href="/files/{name}#sha256={hashlib.sha256(data).hexdigest()}">{name}</a>'.encode()
    world.tls_site.put("/simple/tiny-thing/", response(200, page, content_type="text/html"))
    world.tls_site.put("/files/" + name, response(200, data, content_type="application/zip"))
    return name, data


def test_pip(world, box):
    name, data = put_wheel(world)
    box.session.put("ca.pem", world.ca.read_bytes())
    pip = "python3 -m pip --disable-pip-version-check --cert ca.pem "
    index = "--index-url https://pypi.example/simple/ tiny-thing"
    assert "Would install tiny-thing-1.0" in box.shell(f"{pip} install --dry-run --break-system-packages {index}")
    box.shell(f"{pip} download {index}")
    assert box.session.read(name) == data
    box.shell(f"{pip} install --target lib {index}")
    assert box.value("import sys; sys.path.insert(0, 'lib'); import tiny_thing; tiny_thing.answer") == 42
    refused = box.session.shell(f"{pip} --retries 1 download --index-url https://other.example/simple/ tiny-thing")
    assert refused["status"] == "raised" and \
        "403 other.example:443 is not in the allow-list of this pool" in refused["stderr"]


def test_pip_as_people_type_it(world, box):
    """Into the session's home, on the path at once, for cells and commands, and for the next one."""
    put_wheel(world)
    box.session.put("ca.pem", world.ca.read_bytes())
    options = "--cert ca.pem --index-url https://pypi.example/simple/ -q tiny-thing"
    assert box.value(f"!pip install {options}\nimport tiny_thing; tiny_thing.answer") == 42
    assert box.shell("python -c 'import tiny_thing; print(tiny_thing.answer)'") == "42\n"
    assert box.value("tiny_thing.__file__").startswith("/tmp/.local/")
    assert "tiny-thing" in box.shell("pip3 list --user")
    box.shell("pip uninstall -q -y tiny-thing")
    done = box.session.shell("python -c 'import tiny_thing'")
    assert "No module named" in done["stderr"]


def test_pip_and_a_port_that_is_not_allowed(box):
    done = box.session.shell("pip install --index-url https://pypi.example:8443/simple/ tiny-thing")
    assert done["stderr"].splitlines()[-1] == ("pip: pypi.example:8443 is not in the allow-list of this pool, "
                                               "so nothing can be downloaded from there.")


@pytest.mark.once
@pytest.mark.parametrize("pip", ["!pip", "%pip", "!python3 -m pip"])
def test_pip_says_last_what_the_way_out_refused(box, pip):
    done = box.session.run(f"{pip} install --extra-index-url=https://other.example/ -i https://pypi.example/none/ tiny-thing")
    assert done["stderr"].splitlines()[-1].startswith("pip: other.example:443 is not in the allow-list"), done
    done = box.session.run(f"{pip} install tiny-thing==9 -i https://pypi.example/simple/")
    assert "pip: " not in done["stderr"], done


@pytest.mark.parametrize("url", [f"http://[{PUBLIC6}]/n", "http://six.example/n", "http://x.below.example/n",
                                 "http://FILES.EXAMPLE/n", "http://files.example./n", "http://both.example/n"])
def test_other_ways_to_say_it(world, box, url):
    world.site.put("/n", b"found")
    assert box.value(f"get({url!r})") == (200, "found")


def test_star_is_every_public_host(world, client):
    world.site.put("/star", b"a star")
    with client.session(pool="all") as session:
        box = Box(session)
        for host in ("other.example", PUBLIC, f"[{PUBLIC6}]"):
            assert box.value(f"get('http://{host}/star')") == (200, "a star")
        assert box.value(f"get('http://{PUBLIC}:8080/star')")[0] == 403


def test_private_addresses_by_their_own_name(world, client):
    """A list that says 10.0.0.0/8 means it, and port 8000 of loopback is then the server itself."""
    world.site.put("/private", b"an inner host")
    with client.session(pool="literal") as session:
        box = Box(session)
        assert box.value(f"get('http://{PRIVATE}/private')") == (200, "an inner host")
        assert box.value("get('http://private.example/private')")[0] == 403
        assert box.value(f"get('http://{PRIVATE}:8080/private')")[0] == 403
        assert box.value("say('GET http://127.0.0.1:8000/health HTTP/1.1\\r\\n\\r\\n')").startswith("HTTP/1.1 200 ")


# --- what is refused ---


def test_hosts_that_are_not_on_the_list(world, box):
    for where in ("other.example", "below.example", "example", "files.example.org", "xfiles.example", PUBLIC):
        said = f"{where}:80 is not in the allow-list of this pool\n"
        with world.unasked():
            assert box.value(f"get('http://{where}/')") == (403, said)
            assert box.value(f"connect('{where}:80')").endswith("\r\n\r\n" + said)
        wait_log(world, box.session, rf"GET {re.escape(where)}:80 403 up 0 down 0")
        wait_log(world, box.session, rf"CONNECT {re.escape(where)}:80 403 up 0 down 0")


def test_ports_that_are_not_on_the_list(world, box):
    for where in ("six.example:8080", "pypi.example:22", "pypi.example:8080"):
        with world.unasked():
            assert box.value(f"get('http://{where}/')") == (403, f"{where} is not in the allow-list of this pool\n")


@pytest.mark.parametrize("host", ["private.example", "inside.example", "metadata.example", "localhost"])
def test_names_that_lead_inside(world, any_box, host):
    """They are on the list, and what listens there would answer."""
    said = f"the address of {host} is private, and sandboxes do not reach private addresses\n"
    with world.unasked():
        assert any_box.value(f"say('GET http://{host}/ HTTP/1.1\\r\\n\\r\\n')").endswith("\r\n\r\n" + said)
        answer = any_box.value(f"connect('{host}:443')")
        assert answer.startswith("HTTP/1.1 403 " + said.strip() + "\r\n") and answer.endswith(said)
    wait_log(world, any_box.session, rf"GET {host}:80 403 up 0 down 0")
    wait_log(world, any_box.session, rf"CONNECT {host}:443 403 up 0 down 0")


@pytest.mark.parametrize("host", [METADATA, PRIVATE, "127.0.0.1", "127.0.0.2", "0.0.0.0", "[::1]", "[::]",
                                  f"[::ffff:{METADATA}]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]"])
def test_addresses_that_lead_inside(world, client, host):
    with client.session(pool="all") as session, world.unasked():
        box = Box(session)
        for request in (f"GET http://{host}/ HTTP/1.1\\r\\n\\r\\n", f"CONNECT {host}:80 HTTP/1.1\\r\\n\\r\\n"):
            assert box.value(f"say('{request}')").startswith("HTTP/1.1 403 ")


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1.", "a..b", "a%2eb"])
def test_addresses_that_are_none(client, host):
    with client.session(pool="all") as session:
        box = Box(session)
        assert box.value(f"say('GET http://{host}/leak HTTP/1.1\\r\\n\\r\\n')").startswith("HTTP/1.1 400 ")


def test_the_server_itself(any_box):
    """Its own door listens on loopback, where no key is needed."""
    for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "inside.example"):
        for request in (f"GET http://{host}:8000/v1/pools HTTP/1.1\\r\\n\\r\\n",
                        f"CONNECT {host}:8000 HTTP/1.1\\r\\n\\r\\n"):
            assert any_box.value(f"say('{request}')").startswith("HTTP/1.1 403 ")


def test_a_name_without_an_address(box):
    assert box.value("get('http://nowhere.example/')") == (502, "nowhere.example is a name without an address\n")


def test_a_host_that_is_not_there(client):
    with client.session(pool="literal") as session:
        status, text = Box(session).value("get('http://10.99.99.99/')")
        assert (status, text) == (502, "10.99.99.99:80 could not be reached\n")


@pytest.mark.parametrize("request_", ["GET / HTTP/1.1\\r\\nHost: files.example\\r\\n\\r\\n",
                                      "GET ftp://files.example/ HTTP/1.1\\r\\n\\r\\n",
                                      "GET https://files.example/ HTTP/1.1\\r\\n\\r\\n",
                                      "GET http://u:p@files.example/ HTTP/1.1\\r\\n\\r\\n",
                                      "nonsense\\r\\n\\r\\n"])
def test_requests_that_are_none(box, request_):
    assert box.value(f"say('{request_}')").startswith("HTTP/1.1 400 ")
    assert box.value("get('http://files.example/')")[0] == 404  # and it goes on


# --- no other way ---


def test_nothing_but_the_proxy(any_box):
    for family, address in (("AF_INET", (PUBLIC, 80)), ("AF_INET", (PRIVATE, 80)), ("AF_INET", (METADATA, 80)),
                            ("AF_INET6", (PUBLIC6, 80))):
        assert any_box.value(f"reach(socket.{family}, {address!r})") in ("ENETUNREACH", "EADDRNOTAVAIL")
    for port in (80, 443, 8000, 8080):
        assert any_box.value(f"reach(socket.AF_INET, ('127.0.0.1', {port}))") == "ECONNREFUSED"
    assert any_box.value("reach(socket.AF_INET, ('127.0.0.1', 3128))") == "open"
    refused = any_box.session.run("socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)")
    assert refused["status"] == "raised"


def test_no_names_inside(any_box):
    code = """
try:
    socket.getaddrinfo('files.example', 80)
except socket.gaierror as error:
    said = 'no name'
said
"""
    assert any_box.value(code) == "no name"
    assert any_box.session.shell("curl -sS --noproxy '*' http://files.example/")["status"] == "raised"


def test_the_port_is_taken(any_box):
    """Nobody inside takes the proxy's place."""
    code = """
said = []
for address in ('127.0.0.1', '0.0.0.0'):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            s.bind((address, 3128))
            s.listen()
            said.append('bound')
        except OSError as error:
            said.append(error.strerror)
said
"""
    assert any_box.value(code) == ["Address already in use"] * 2


def test_a_pool_without_egress(client):
    with client.session(pool="none") as session:
        box = Box(session)
        assert box.value("reach(socket.AF_INET, ('127.0.0.1', 3128))") == "ECONNREFUSED"
        assert box.value(SHOW_CELL) == {}
        assert box.session.shell(SHOW_SHELL)["stdout"] == ""
        assert box.value(f"reach(socket.AF_INET, ('{PUBLIC}', 80))") == "ENETUNREACH"


def test_not_from_one_sandbox_into_another(client):
    """What one of them listens on is its own, whatever the other asks for."""
    with client.session(pool="literal") as one, client.session(pool="literal") as other:
        listener = Box(one)
        assert listener.value("s = socket.create_server(('0.0.0.0', 8080)); s.getsockname()[1]") == 8080
        assert listener.value("reach(socket.AF_INET, ('127.0.0.2', 8080))") == "open"
        # The world's own site is there, on the server's loopback, and has no such page.
        assert Box(other).value("get('http://127.0.0.2:8080/')") == (404, "SECRET of the inside")
        code = """
import select
came = 0
while select.select([s], [], [], 0)[0]:
    came += 1
    s.accept()
came
"""
        assert listener.value(code) == 1


# --- its life ---


def test_two_at_once(world, client):
    """A slow answer to one does not hold up the other, and each gets its own."""
    go = threading.Event()

    def slow(conn, head):
        assert go.wait(60)
        conn.sendall(response(200, b"slow"))

    world.site.put("/slow", slow)
    world.site.put("/fast", b"fast")
    with world.client() as c1, world.client() as c2, c1.session(pool="web") as s1, c2.session(pool="web") as s2:
        one, two = Box(s1), Box(s2)

        def fast():
            try:
                return [two.value("get('http://files.example/fast')") for _ in range(5)]
            finally:
                go.set()

        slow_answer, fast_answers = together(lambda: one.value("get('http://files.example/slow')"), fast)
        assert slow_answer == (200, "slow") and fast_answers == [(200, "fast")] * 5
        wait_log(world, s1, r"GET files.example:80 200 up 0 down \d+")
        wait_log(world, s2, r"GET files.example:80 200 up 0 down \d+", 5)


def test_many_connections_of_one(world, box):
    world.site.put("/many", b"one of many")
    code = """
import concurrent.futures
with concurrent.futures.ThreadPoolExecutor(20) as pool:
    found = list(pool.map(lambda i: get('http://files.example/many'), range(40)))
set(found)
"""
    assert box.value(code) == {(200, "one of many")}


def test_after_sleep(world, client):
    world.site.put("/awake", b"awake")
    code = "import urllib.request; urllib.request.urlopen('http://files.example/awake').read()"
    once = client.post("/v1/execute", {"code": code, "pool": "web"}).expect(200).json
    assert once["result"] == "b'awake'"
    path = "/v1/sessions/" + once["session"]
    retort.wait_until(lambda: client.get(path).json["state"] == "asleep", "sleep")
    for _ in range(2):
        again = client.post(path + "/execute", {"code": code}).expect(200).json
        assert again["result"] == "b'awake'"
    client.delete(path).expect(204)


def test_after_a_restart_and_a_dead_interpreter(world, client, box):
    world.site.put("/still", b"still")
    client.post(box.session.path + "/restart").expect(200)
    assert Box(box.session).value("get('http://files.example/still')") == (200, "still")
    assert box.session.run("import os; os.kill(os.getpid(), 9)")["status"] == "died"
    assert Box(box.session).value("get('http://files.example/still')") == (200, "still")


def sockets(world):
    """What the server has open that is a socket."""
    found = 0
    for fd in os.listdir(f"/proc/{world.pid}/fd"):
        try:
            found += os.readlink(f"/proc/{world.pid}/fd/{fd}").startswith("socket:")
        except OSError:
            pass
    return found


def test_the_listener_goes_with_the_session(world, client):
    """And so does what was under way: the host sees the connection end."""
    ended = threading.Event()

    def wait_for_the_end(conn, head):
        conn.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf ")
        if conn.recv(1) == b"":
            ended.set()

    world.site.put("/half", wait_for_the_end)
    with world.client() as own:
        session = own.session(pool="web")
        session.run(TOOLS)
        session.background("get('http://files.example/half')")
        retort.wait_until(lambda: world.site.asked("/half") == 1, "the request")
        own.delete(session.path).expect(204)
    assert ended.wait(30)
    wait_log(world, session, r"GET files.example:80 200 up 0 down \d+")


def test_nothing_is_left_open(world, client):
    def life():
        with client.session(pool="web") as session:
            Box(session).value("get('http://files.example/nothing')")
            client.delete(session.path).expect(204)

    life()
    client.get("/ready")
    retort.wait_until(lambda: client.get("/v1/pools/web").json["parked"] == 1, "a parked sandbox")
    before = sockets(world)
    for _ in range(5):
        life()
    retort.wait_until(lambda: client.get("/v1/pools/web").json["parked"] == 1 and sockets(world) <= before,
                      "the end of every socket")


def test_a_server_that_ends_with_a_request_under_way():
    """It is not waited for, and nothing is left."""
    with World("--drain", "1", config=CONFIG) as world:
        begun = threading.Event()

        def forever(conn, head):
            begun.set()
            conn.recv(1)

        world.site.put("/forever", forever)
        with world.client() as c, c.session(pool="web") as session:
            session.run(TOOLS)
            session.background("get('http://files.example/forever')")
            assert begun.wait(30)
        world.stop()


# --- settings ---


def test_pools_say_it(client):
    pools = {p["name"]: p["egress"] for p in client.get("/v1/pools").expect(200).json["data"]}
    assert pools["none"] == {"mode": "none", "hosts": []}
    assert pools["all"] == {"mode": "allow-list", "hosts": ["*", "*:8000"]}
    assert pools["web"]["mode"] == "allow-list" and "*.below.example" in pools["web"]["hosts"]


@pytest.mark.parametrize("text, said", [
    ("[pool a]\negress = allow-list\negress-hosts = ok.example, a/b\n", ":3: egress-hosts: 'a/b' is not a host"),
    ("[pool a]\negress = allow-list\negress-hosts = 10.0.0.1/8\n", ":3: egress-hosts: '10.0.0.1/8' is not a host"),
    ("[pool a]\negress = everything\n", ":2: egress: 'everything' is neither none nor allow-list"),
    ("[pool a]\negress = allow-list\n", "pool a: egress = allow-list needs egress-hosts"),
    ("fetch-allow = http://x\n", ":1: fetch-allow: 'http://x' is not a host")])
def test_settings_that_cannot_be(text, said, tmp_path):
    (tmp_path / "retort.ini").write_text(text)
    code, _, err = retort.call("serve", "--check-config", "--config", tmp_path / "retort.ini")
    assert code == 2 and said in err
