"""The event loop of the cells: there for every one of them, and tasks that go on between cells."""

import pytest

from support import retort

pytestmark = pytest.mark.once

session = retort.Session("--timeout", "3", "--keep-going")

TICK = """import asyncio
async def tick(name, pause=0):
    print(name, "begins")
    await asyncio.sleep(pause)
    print(name, "ends")
    return name
"""
running = session.cell(TICK + "loop = asyncio.get_running_loop()\n"
                              "loop is asyncio.get_event_loop(), loop.is_running()")
made = session.cell("slow = asyncio.create_task(tick('slow', 0.05))\nprint('cell ends')")
waited = session.cell("print(await slow)")
run = session.cell("asyncio.run(tick('run'))")
until = session.cell("loop.run_until_complete(tick('until'))")
runner = session.cell("hasattr(asyncio, 'Runner') and asyncio.Runner().run(tick('runner'))")
inside = session.cell("async def nested():\n    asyncio.run(tick('never'))\nawait nested()")
thread = session.cell("await asyncio.to_thread(sum, [1, 2, 3])")
magic = session.cell("%time asyncio.create_task(tick('magic')) is not None")
failing = session.cell("async def bad():\n    raise ValueError('in a task')\n"
                       "failed = asyncio.create_task(bad()); None")
told = session.cell("try:\n    await failed\nexcept ValueError as e:\n    print('caught', e)")
leaving = session.cell("async def leave():\n    await asyncio.sleep(0)\n    raise SystemExit(3)\n"
                       "gone = asyncio.ensure_future(leave()); 5")
after_leaving = session.cell("6")
by_thread = session.cell("import threading\nfuture = loop.create_future()\n"
                         "threading.Timer(0.05, loop.call_soon_threadsafe,"
                         " (future.set_result, 'from a thread')).start()")
of_thread = session.cell("await future")
closing = session.cell("loop.close()")
new_loop = session.cell("await asyncio.sleep(0)\nasyncio.get_running_loop() is loop")
hogging = session.cell("async def hog():\n    await asyncio.sleep(0)\n    while True: pass\n"
                       "hogs = asyncio.ensure_future(hog()); kept = 'kept'")
kept_out = session.cell("print('not reached')")
free_again = session.cell("kept, hogs.done()")


def test_plain_cells_have_a_running_loop():
    assert running.result == "(True, True)"


def test_task_takes_a_step_with_its_cell_and_goes_on():
    assert made.stdout == "cell ends\nslow begins\n"
    assert waited.stdout == "slow ends\nslow\n"


@pytest.mark.parametrize("answer, name", [(run, "run"), (until, "until"), (runner, "runner")],
                         ids=["asyncio.run", "run_until_complete", "Runner"])
def test_running_to_the_end_works(answer, name):
    assert answer.status == "ok", answer.error
    assert answer.result in ("'%s'" % name, "False")  # Python 3.10 has no Runner


def test_really_running_loop_is_not_nested():
    assert inside.error["name"] == "RuntimeError"
    assert "running event loop" in inside.error["message"]


def test_threads_and_magics():
    assert thread.result == "6"
    assert magic.status == "ok" and "magic begins" in magic.stdout
    assert of_thread.result == "'from a thread'"


def test_what_a_task_raises_is_no_end():
    assert failing.status == "ok" and told.stdout.endswith("caught in a task\n")
    assert leaving.result == "5" and after_leaving.result == "6"


def test_closed_loop_is_replaced():
    assert closing.error["name"] == "RuntimeError"  # as in a notebook: it counts as running
    assert new_loop.status == "ok"


def test_task_that_never_yields_costs_one_cell():
    assert kept_out.status == "timeout" and kept_out.stdout == "" and not kept_out.lost
    assert free_again.result == "('kept', True)"


def test_displays_of_tasks_come_with_the_next_cell():
    late = retort.Session()
    late.cell("import asyncio\nasync def show():\n    await asyncio.sleep(0)\n    display('late')\n"
              "shown = asyncio.create_task(show())")
    answer = late.cell("await shown; print('cell')")
    assert [d["text/plain"] for d in answer.displays] == ["'late'"]
