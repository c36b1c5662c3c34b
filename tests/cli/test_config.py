"""Settings from flags, the environment and the file; mistakes with their file and line."""

import os

import pytest

from support import retort

pytestmark = pytest.mark.once


def check(*args, file=None, tmp_path=None, **env):
    """The effective settings by section and name, of `serve --check-config`."""
    if file is not None:
        path = tmp_path / "retort.ini"
        path.write_text(file)
        args = ("--config", path, *args)
    status, out, err = retort.call("serve", "--check-config", *args, env={**os.environ, **env})
    assert status == 0, err
    found, section = {}, None
    for line in out.decode().splitlines():
        if line.startswith("["):
            section = found.setdefault(line, {})
        elif line and not line.startswith(";"):
            name, _, value = line.split("   ;")[0].partition("=")
            section[name.strip()] = value.strip()
    return found


def refused(*args, file=None, tmp_path=None, **env):
    if file is not None:
        path = tmp_path / "retort.ini"
        path.write_text(file)
        args = ("--config", path, *args)
    status, out, err = retort.call("serve", "--check-config", *args, env={**os.environ, **env})
    assert (status, out) == (2, b"") and err.count("\n") == 1, (status, out, err)
    return err


def test_page_is_what_the_table_says():
    status, out, err = retort.call("help", "configuration")
    assert (status, err) == (0, "")
    assert out.decode() == (retort.REPO / "docs/configuration.md").read_text(), \
        "run: build/retort help configuration > docs/configuration.md"


def test_example_is_accepted():
    found = check("--config", retort.REPO / "deploy/retort.ini")
    assert found["[server]"]["tenant-sessions"] == "200"
    assert found["[pool default]"]["max-sessions"] == "1000"


def test_example_with_its_comments_taken_away(tmp_path):
    """What the example shows as a comment is right, too."""
    text = (retort.REPO / "deploy/retort.ini").read_text()
    text = text.replace("; [pool", "[pool").replace("; listen", "; ")
    head, tail = text.split("[pool packages]")
    tail = "\n".join(line.removeprefix(";").removeprefix(" ") for line in tail.splitlines())
    found = check(file=head + "[pool packages]\n" + tail, tmp_path=tmp_path)
    assert found["[pool packages]"]["egress-hosts"] == "pypi.org, files.pythonhosted.org"
    assert found["[pool packages]"]["python"] == "/srv/retort/venv/bin/python"


def test_who_wins(tmp_path):
    file = "drain = 1\nmemory = 100M\n[pool a]\n[pool b]\nmemory = 400M\n"
    for args, env, drain, memory in [((), {}, "1", "100M"),
                                     ((), {"RETORT_DRAIN": "2", "RETORT_MEMORY": "200M"}, "2", "200M"),
                                     (("--drain", "3", "--memory=300M"),
                                      {"RETORT_DRAIN": "2", "RETORT_MEMORY": "200M"}, "3", "300M")]:
        found = check(*args, file=file, tmp_path=tmp_path, **env)
        assert found["[server]"]["drain"] == drain
        assert found["[pool a]"]["memory"] == memory
        assert found["[pool b]"]["memory"] == "400M"


def test_file_named_by_the_environment(tmp_path):
    (tmp_path / "x.ini").write_text("drain = 7\n")
    assert check(RETORT_CONFIG=str(tmp_path / "x.ini"))["[server]"]["drain"] == "7"
    assert "No such file" in refused(RETORT_CONFIG=str(tmp_path / "absent.ini"))


def test_without_a_file():
    found = check("--listen", "9000", "--listen", "[::1]:9000")
    assert list(found) == ["[server]", "[pool default]"]
    assert found["[server]"]["listen"] == "9000, [::1]:9000"
    assert found["[pool default]"]["ready"] == str(2 * os.cpu_count())


def test_state_is_where_it_belongs(tmp_path):
    if os.geteuid() == 0:
        assert check()["[server]"]["state"] == "/var/lib/retort"
    else:
        assert check(XDG_STATE_HOME="/x")["[server]"]["state"] == "/x/retort"
        assert check(XDG_STATE_HOME="", HOME="/h")["[server]"]["state"] == "/h/.local/state/retort"


@pytest.mark.parametrize("file, line, says", [
    ("memry = 1G\n", 1, "did you mean memory?"),
    ("\n\n[pool a]\nmemory = lots\n", 4, "'lots' is not a size"),
    ("[pols a]\n", 1, "there is no section [pols a]"),
    ("pids = 9\npids = 9\n", 2, "pids is there already, in line 1"),
    ("pids = 9\nbroken\n", 2, "neither [section] nor name = value"),
    ("listen =\n", 1, "must not be empty"),
])
def test_mistakes_name_file_and_line(tmp_path, file, line, says):
    error = refused(file=file, tmp_path=tmp_path)
    assert f"{tmp_path}/retort.ini:{line}: " in error and says in error


@pytest.mark.parametrize("args, env, says", [
    (("--tls-cert", "/x"), {}, "tls-key is missing"),
    (("--listen", "example.com:80"), {}, "is no address"),
    (("--egress", "allow-list"), {}, "needs egress-hosts"),
    (("--egress", "allow-list", "--egress-hosts", "pypi.org, http://x/"), {}, "egress-hosts"),
    (("--ready", "5", "--max-sessions", "4"), {}, "ready is 5"),
    ((), {"RETORT_LOG_FORMAT": "xml"}, "RETORT_LOG_FORMAT: 'xml' is neither text nor json"),
    ((), {"RETORT_FETCH_PRIVATE": "maybe"}, "RETORT_FETCH_PRIVATE"),
    (("extra",), {}, "takes no argument"),
    (("--config", "/no/such.ini"), {}, "cannot read /no/such.ini"),
    (("--config", "/"), {}, "is not a file"),
])
def test_impossible_settings(args, env, says):
    assert says in refused(*args, **env)


def test_a_slip_in_the_environment_is_told():
    status, _, err = retort.call("serve", "--check-config",
                                 env={**os.environ, "RETORT_MEMROY": "1G", "RETORT_SOMETHING": "1"})
    assert status == 0
    assert "RETORT_MEMROY is no setting; did you mean RETORT_MEMORY?" in err
    assert "RETORT_SOMETHING" not in err


def test_what_is_shown_can_be_read_again(tmp_path):
    _, first, _ = retort.call("serve", "--check-config", "--config", retort.REPO / "deploy/retort.ini")
    (tmp_path / "again.ini").write_bytes(first)
    _, second, _ = retort.call("serve", "--check-config", "--config", tmp_path / "again.ini")
    assert first.splitlines()[1:] == second.splitlines()[1:]
