"""The client's roots: folders that its user has opened are in the session, as --roots says."""

import json

import pytest
from support import retort
from support.mcp import text_of
from support.stdio import Local

ROOTS = {"roots": {"listChanged": True}}


@pytest.fixture
def opened(tmp_path):
    """Two folders as a user has them, one with a name that a URI must escape."""
    for each in (tmp_path, *tmp_path.parents[:2]):
        each.chmod(0o755)
    for name in ("trip", "my notes é"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o777)  # root's sandboxes are other users
        (tmp_path / name / "towns.csv").write_text("Lyon\n")
    return tmp_path


def asked(client):
    client.wait(lambda: any(m.get("method") == "roots/list" for m in client.heard), "roots/list")
    return next(m["id"] for m in client.heard if m.get("method") == "roots/list")


def answer(client, *uris):
    client.send({"jsonrpc": "2.0", "id": asked(client),
                 "result": {"roots": [{"uri": str(u), "name": "a name"} for u in uris]}})


def run(client, code):
    return text_of(client.call("run_shell", command=code))


def test_roots_can_be_read_and_the_model_is_told(opened):
    with Local(capabilities=ROOTS) as client:
        told = client.initialize()["instructions"]
        assert "Folders that the user has opened in this client are in every session, below /mnt." in told
        answer(client, (opened / "trip").as_uri(), (opened / "my notes é").as_uri())
        said = run(client, "cat /mnt/trip/towns.csv '/mnt/my notes é/towns.csv'; touch /mnt/trip/new")
        assert "Folders that the user has opened in this client: /mnt/trip (read only), /mnt/my notes é (read only)." in said
        assert "Lyon\nLyon\n" in said and "Read-only file system" in said
        assert "Folders that" not in run(client, "true")
        assert [f.name for f in (opened / "trip").iterdir()] == ["towns.csv"]


def test_rw_writes_to_the_users_disk(opened):
    with Local("--roots", "rw", capabilities=ROOTS) as client:
        client.initialize()
        answer(client, (opened / "trip").as_uri())
        assert "what you write there stays on the disk" in run(client, "echo new > /mnt/trip/new")
        assert (opened / "trip" / "new").read_text() == "new\n"


@pytest.mark.parametrize("flags, capabilities", [
    (["--roots", "off"], ROOTS),
    (["--egress", "allow-list", "--egress-hosts", "files.example"], ROOTS),
    ([], {})], ids=["off", "with a way out", "not declared"])
def test_not_asked(flags, capabilities):
    with Local(*flags, capabilities=capabilities) as client:
        assert "opened in this client" not in client.initialize()["instructions"]
        assert "data" in run(client, "ls /mnt")
        assert not any(m.get("method") == "roots/list" for m in client.heard)


def test_a_way_out_and_roots_when_the_user_says_so(opened):
    with Local("--egress", "allow-list", "--egress-hosts", "files.example", "--roots", "ro",
               capabilities=ROOTS) as client:
        client.initialize()
        answer(client, (opened / "trip").as_uri())
        assert "Lyon" in run(client, "cat /mnt/trip/towns.csv")


def test_requests_wait_for_the_answer(opened):
    """Also when they come first; one that is cancelled meanwhile never runs. A ping does not wait."""
    with Local("--roots", "rw", capabilities=ROOTS) as client:
        client.initialize()
        question = asked(client)
        gone = client.begin_call("run_shell", command="touch /mnt/trip/gone")
        first = client.begin_call("run_shell", command="cat /mnt/trip/towns.csv")
        listed = client.begin("tools/list")
        client.cancel(gone)
        assert client.request("ping") == {}
        assert listed not in client.answers and first not in client.answers
        client.send({"jsonrpc": "2.0", "id": question, "result": {"roots": [{"uri": (opened / "trip").as_uri()}]}})
        assert "Lyon" in text_of(client.result(first)) and client.result(listed)["tools"]
        assert gone not in client.answers and not (opened / "trip" / "gone").exists()


@pytest.mark.parametrize("reply", [
    {"error": {"code": -32601, "message": "no"}}, {"result": {}}, {"result": {"roots": None}},
    {"result": {"roots": [5, {}, {"uri": 7}, {"uri": "https://example.com/a"}, {"uri": "file:"},
                          {"uri": "file://other.example/etc"}, {"uri": "file:///%zz"}, {"uri": "file:///a%00b"}]}}],
    ids=["an error", "nothing", "null", "no folders of this machine"])
def test_answers_without_folders(reply):
    with Local(capabilities=ROOTS) as client:
        client.initialize()
        client.send({"jsonrpc": "2.0", "id": asked(client), **reply})
        assert run(client, "ls /mnt").splitlines()[1:3] == ["stdout:", "data"]


def test_too_much_is_left_out(opened):
    """Not the whole disk, not the home directory, not what is no folder; the ninth neither."""
    (opened / "file").write_text("")
    home = opened / "home" / "ada"
    home.mkdir(parents=True)
    many = []
    for n in range(9):
        (opened / f"folder{n}").mkdir()
        many.append((opened / f"folder{n}").as_uri())
    with Local(capabilities=ROOTS, env={"HOME": str(home)}) as client:
        client.initialize()
        answer(client, "file:///", home.as_uri(), (opened / "home").as_uri(), (opened / "file").as_uri(),
               (opened / "none").as_uri(), (opened / "trip").as_uri())
        assert "opened in this client: /mnt/trip (read only)." in run(client, "ls /mnt")
        said = client.said()
        for word in ("everything", "whole home directory", "not a folder", "No such file"):
            assert word in said, said
    with Local(capabilities=ROOTS) as client:
        client.initialize()
        answer(client, *many)
        assert "folder7" in run(client, "ls /mnt") and "folder8" not in run(client, "ls /mnt")


def test_a_folder_that_was_given_stays_as_it_was_given(opened):
    with Local("--folder", opened / "trip", capabilities=ROOTS) as client:
        client.initialize()
        answer(client, (opened / "trip").as_uri())
        assert "opened in this client:" not in run(client, "touch /mnt/trip/new; ls /mnt")
        assert (opened / "trip" / "new").exists()


def test_a_client_that_never_answers_is_served():
    with Local(capabilities=ROOTS) as client:
        client.initialize()
        asked(client)
        assert "42" in run(client, "echo 42")
        assert "does not name them" in client.said()


def test_the_end_of_input_does_not_wait():
    """As of a script that pipes its lines in."""
    lines = [{"jsonrpc": "2.0", "id": 1, "method": "initialize",
              "params": {"protocolVersion": "2025-11-25", "capabilities": ROOTS,
                         "clientInfo": {"name": "script", "version": "1"}}},
             {"jsonrpc": "2.0", "method": "notifications/initialized"},
             {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}]
    code, out, _ = retort.call("mcp", input="".join(json.dumps(m) + "\n" for m in lines).encode())
    heard = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and [m["id"] for m in heard if "result" in m] == [1, 2]


def test_no_root_is_of_the_kernel(opened):
    """/proc has the processes of the whole machine, and /dev its disks."""
    with Local(capabilities=ROOTS) as client:
        client.initialize()
        answer(client, "file:///proc", "file:///sys", "file:///dev", f"file://{opened}/trip")
        assert run(client, "ls /mnt").endswith("stdout:\ndata\ntrip")
