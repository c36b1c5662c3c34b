"""retort doctor tells what holds a session in."""

import retort

LAYERS = ["user namespace", "mount", "pid", "network", "seccomp", "landlock", "cgroup", "memory",
          "python", "ipython"]


def test_doctor():
    status, out, err = retort.call("doctor")
    text = out.decode()
    assert status == 0, text + err
    assert err == ""
    for layer in LAYERS:
        assert layer in text.lower(), text
    assert max(map(len, text.splitlines())) <= 160


def test_doctor_of_a_python_that_will_not_do():
    status, out, err = retort.call("doctor", "--python", "/bin/true")
    assert status in (1, 2)
    assert "/bin/true" in out.decode() + err
