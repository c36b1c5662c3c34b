"""Shell commands beside the cells of a session."""

from support import retort

session = retort.Session()

hello = session.shell("echo out; echo err >&2; exit 0")
fails = session.shell("echo before; exit 7")
missing = session.shell("no-such-program-here")
killed = session.shell("kill -9 $$")
pipeline = session.shell("printf '3\\n1\\n2\\n' | sort | head -2")
bash_only = session.shell("a=(x y z); [[ ${#a[@]} == 3 ]] && echo \"${a[-1]}\" <<< here")
where = session.shell("pwd; id -un; echo $HOME; cd /tmp && pwd")
cd_is_its_own = session.shell("pwd")
python = session.shell("python3 -c 'import sys; print(sys.version_info[0])'")
no_stdin = session.shell("cat; echo end")
unicode = session.shell("echo 'Grüße 数据 🎉'")
empty = session.shell("")
many_lines = session.shell("seq 10000")
turns = session.shell("for i in 1 2 3; do echo out $i; sleep 0.1; echo err $i >&2; sleep 0.1; done")

makes = session.cell("import os, subprocess\nx = 'kept'\nopen('from-cell.txt', 'w').write('cell')\n"
                     "os.environ['SET_BY_CELL'] = 'yes'")
reads = session.shell("cat from-cell.txt; echo; echo \"[$SET_BY_CELL]\"")
background = session.cell("child = subprocess.Popen(['sh', '-c', 'while [ ! -e stop ]; do sleep 0.05; "
                          "done; echo stopped > seen'])\nchild.poll()")
stops = session.shell("touch stop; while [ ! -e seen ]; do sleep 0.05; done; cat seen")
ended = session.cell("(child.wait(), x)")
left_behind = session.shell("sleep 300 > /dev/null 2>&1 & echo started")
holds_the_pipe = session.shell("sleep 300 & echo still answers")


def test_streams_and_exit_code():
    assert (hello.stdout, hello.stderr) == ("out\n", "err\n")
    assert (hello.kind, hello.status, hello.outcome["exit_code"]) == ("command", "ok", 0)
    assert (fails.stdout, fails.status, fails.outcome["exit_code"]) == ("before\n", "raised", 7)
    assert (missing.status, missing.outcome["exit_code"]) == ("raised", 127)
    assert "not found" in missing.stderr


def test_ended_by_a_signal():
    assert (killed.status, killed.outcome["exit_code"]) == ("died", 128 + 9)
    assert not killed.lost
    assert "signal 9" in killed.message


def test_bash():
    assert pipeline.stdout == "1\n2\n"
    assert bash_only.stdout == "z\n"
    assert unicode.stdout == "Grüße 数据 🎉\n"
    assert many_lines.stdout == "".join(f"{n}\n" for n in range(1, 10001))
    assert (empty.events, empty.status) == ([], "ok")
    assert no_stdin.stdout == "end\n"


def test_order_of_streams():
    assert turns.order == [(kind, f"{short} {i}\n") for i in (1, 2, 3)
                           for kind, short in (("stdout", "out"), ("stderr", "err"))]


def test_place():
    assert where.stdout == "/workspace\nuser\n/tmp\n/tmp\n"
    assert cd_is_its_own.stdout == "/workspace\n"
    assert python.stdout == "3\n"


def test_same_files_as_cells():
    assert reads.stdout == "cell\n[]\n"


def test_beside_what_a_cell_left_running():
    assert background.result is None
    assert stops.stdout == "stopped\n"
    assert ended.result == "(0, 'kept')"


def test_a_command_does_not_wait_for_its_background():
    assert left_behind.stdout == "started\n"
    assert holds_the_pipe.stdout == "still answers\n"
    for answer in (left_behind, holds_the_pipe):
        assert answer.status == "ok" and answer.outcome["wall_ms"] < 20_000
