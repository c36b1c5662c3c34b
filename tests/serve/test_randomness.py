"""Sessions of one server are forks of one interpreter: none may draw what another draws."""

import ast

# In C, past the wrapper that Python has around it; in Python; in OpenSSL; in numpy.
DRAW = """
import ctypes, os, random, secrets, ssl, uuid
import numpy
libc, drawn = ctypes.CDLL(None), ctypes.create_string_buffer(16)
assert libc.getrandom(drawn, 16, 0) == 16
arc4 = getattr(libc, "arc4random", None)
print({
    "getrandom": drawn.raw.hex(), "arc4random": arc4() if arc4 else os.urandom(4),
    "urandom": os.urandom(16).hex(), "random": random.random(), "secrets": secrets.token_hex(),
    "uuid4": str(uuid.uuid4()), "openssl": ssl.RAND_bytes(16).hex(),
    "numpy": float(numpy.random.random()), "generator": float(numpy.random.default_rng().random()),
})
"""


def draw(session):
    answer = session.run(DRAW)
    assert answer["outcome"]["status"] == "ok", answer
    return ast.literal_eval(answer["stdout"])


def test_sessions_and_kernels_differ(client):
    drawn = []
    for _ in range(8):
        with client.session() as made:
            drawn.append(draw(made))
            client.post("/v1/sessions/%s/restart" % made.id).expect(200)
            drawn.append(draw(made))
    for name in drawn[0]:
        assert len({one[name] for one in drawn}) == len(drawn), (name, drawn)
