"""Predicts another session's random numbers: forks of one interpreter start with the same state.

Everything that is random is seeded anew, in every session and in every new interpreter of one.
"""

import json

from outside import cell, holds

GUEST = """
import random, secrets, ssl, tempfile, uuid
import numpy

values = dict(
    random=random.random(),
    urandom=os.urandom(8).hex(),
    secrets=secrets.token_hex(8),
    uuid1=str(uuid.uuid1()),
    uuid4=str(uuid.uuid4()),
    ssl=ssl.RAND_bytes(8).hex(),
    numpy=float(numpy.random.random()),
    generator=float(numpy.random.default_rng().random()),
    temp=tempfile.mktemp(),
)
print(json.dumps(values), flush=True)
"""


def check(box):
    flags = ["--preload", "random,secrets,ssl,tempfile,uuid,numpy", "--keep-going"]
    first = box.run(cell(GUEST), cell("os._exit(0)"), cell(GUEST), flags=flags)
    second = box.run(cell(GUEST), flags=flags)
    drawn = [json.loads(first.text(0)), json.loads(first.text(2)), json.loads(second.text(0))]
    for name in drawn[0]:
        values = [d[name] for d in drawn]
        holds(len(set(values)) == 3, f"{name} came twice: {values}")
