"""Sessions come from one image and must not share what is random; nor may kernels of a session."""

import ast

import pytest

from support import retort

ASK = """
import random, secrets, ssl, uuid, os, tempfile
import numpy
print({
    "random": random.random(), "random object": random.Random().random(),
    "randint": [random.randrange(10**9) for _ in range(3)],
    "numpy": float(numpy.random.rand()), "numpy generator": float(numpy.random.default_rng().random()),
    "uuid4": str(uuid.uuid4()), "uuid1": str(uuid.uuid1()), "secrets": secrets.token_hex(8),
    "ssl": ssl.RAND_bytes(8).hex(), "urandom": os.urandom(8).hex(),
    "hash": hash("text"), "name": next(tempfile._get_candidate_names()),
})
"""
SECOND_KERNEL = ["-c", ASK, "-c", "import os; os._exit(1)", "-c", ASK]
PER_ZYGOTE = {"hash"}  # a fork cannot change it; another start of the pool does


def said(answer):
    assert answer.status == "ok", answer
    return ast.literal_eval(answer.stdout)


@pytest.fixture(scope="module")
def states():
    runs = [retort.run("--keep-going", "--preload", "numpy,pandas,ssl", *SECOND_KERNEL)
            for _ in range(2)]
    return [[said(run[0]), said(run[2])] for run in runs]


def test_differs_between_sessions(states):
    (one, _), (two, _) = states
    assert {k for k in one if one[k] == two[k]} == set()


def test_differs_between_kernels_of_a_session(states):
    for before, after in states:
        assert {k for k in before if before[k] == after[k]} <= PER_ZYGOTE
