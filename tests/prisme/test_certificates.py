"""P28 by client certificates: who may call is what an authority of the operator's has signed."""

import shutil
import ssl

import pytest
from support.authority import Authority, openssl
from support.server import Server, folder

SOURCES = 'mtls:agent-factory, mtls:"CN=Storage Service,O=Example\\, Inc"=storage, token:by-token'


@pytest.fixture(scope="module")
def place():
    one = folder()
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
            "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout",
            one / "server.key", "-out", one / "server.crt")
    yield one
    shutil.rmtree(one)


@pytest.fixture(scope="module")
def ours(place):
    return Authority(place, "ours")


@pytest.fixture(scope="module")
def server(place, ours):
    context = ssl.create_default_context(cafile=place / "server.crt")
    with Server("--tls-cert", place / "server.crt", "--tls-key", place / "server.key",
                "--tls-client-ca", ours.cert, "--prisme-sources", SOURCES, tls=context) as one:
        one.key = one.keys("create", "--tenant", "keyed", "--quiet").strip()
        one.stop()
        one.start()
        yield one


@pytest.fixture
def ask(server, place):
    """The answer to a caller who shows this certificate, or none."""
    def one(shown=None, headers=None, key=None, path="/prisme/execute_python"):
        server.tls = ssl.create_default_context(cafile=place / "server.crt")
        if shown:
            server.tls.load_cert_chain(*shown)
        with server.client(key) as c:
            return c.post(path, {"code": "return 1"}, headers=headers or {})
    return one


def refused(answer):
    assert answer.expect(403).json["error"] == "UNTRUSTED_SOURCE"


def test_p28_certificate_of_a_listed_common_name(ask, ours):
    good = ours.sign("good", "/O=Example/CN=agent-factory")
    assert ask(good).expect(200).json["result"] == 1
    assert ask(ours.sign("any-purpose", "/CN=agent-factory", purpose=None)).status == 200


def test_p28_certificate_of_a_listed_subject(ask, ours):
    assert ask(ours.sign("whole", "/O=Example, Inc/CN=Storage Service")).status == 200
    refused(ask(ours.sign("part", "/CN=Storage Service")))
    refused(ask(ours.sign("others", "/O=Other/CN=Storage Service")))


def test_p28_certificate_of_a_stranger(ask, ours):
    refused(ask(ours.sign("stranger", "/CN=stranger")))
    refused(ask(ours.sign("two", "/CN=agent-factory/CN=stranger")))
    refused(ask(ours.sign("case", "/CN=Agent-Factory")))
    refused(ask(ours.sign("token-name", "/CN=by-token")))


def test_p28_certificate_that_is_not_good(ask, ours, place):
    subject = "/CN=agent-factory"
    bad = [ours.sign("expired", subject, end="20210101000000Z"),
           ours.sign("early", subject, begin="20980101000000Z"),
           ours.sign("for-servers", subject, purpose="serverAuth"),
           Authority(place, "theirs").sign("foreign", subject)]
    self_signed = Authority(place, "agent-factory")
    bad.append((self_signed.cert, self_signed.key))
    for shown in bad:
        refused(ask(shown))


def test_p28_an_authority_of_the_same_name_is_another(ask, place):
    other = folder()
    try:
        refused(ask(Authority(other, "ours").sign("forged", "/CN=agent-factory")))
    finally:
        shutil.rmtree(other)


def test_p28_without_a_certificate_a_key_decides(ask, server, ours):
    refused(ask())
    assert ask(key=server.key).expect(200).json["result"] == 1
    assert ask(key="rt_wrong").status == 401
    # A key has the say with a certificate, too, whatever that is worth.
    assert ask(ours.sign("late", "/CN=agent-factory", end="20210101000000Z"), key=server.key).status == 200
    assert ask(ours.sign("fine", "/CN=agent-factory"), key="rt_wrong").status == 401


def test_p28_headers_prove_no_certificate(ask):
    for name in ("x-ssl-client-s-dn", "x-client-cert", "x-forwarded-client-cert", "ssl-client-verify"):
        refused(ask(headers={name: "CN=agent-factory"}))


def test_p28_certificates_open_this_door_alone(ask, ours):
    good = ours.sign("narrow", "/CN=agent-factory")
    assert ask(good, path="/v1/execute").status == 401
    assert ask(good, path="/qwen/code_interpreter").status == 401


def test_p28_each_is_a_tenant_of_its_own(ask, server, ours, place):
    body = {"functions": {"f": {"code": "return 'mine'"}}}
    for shown, status in ((ours.sign("mine", "/CN=agent-factory"), 200),
                          (ours.sign("else", "/O=Example, Inc/CN=Storage Service"), 404)):
        server.tls = ssl.create_default_context(cafile=place / "server.crt")
        server.tls.load_cert_chain(*shown)
        with server.client() as c:
            if status == 200:
                c.post("/prisme/v2/functions/space", body).expect(200)
            assert c.post("/prisme/v2/functions/space/run/f", {}).status == status


@pytest.mark.parametrize("flags, said", [
    (["--prisme-sources", "mtls:a"], "tls-client-ca"),
    *((["--prisme-sources", word], "no source")
      for word in ("unix:x=a", "unix:99999999999=a", "unix:4294967295=a", "unix:1=", "unix:1=A b", "token:",
                   "token:" + "a" * 64, "other:a", 'mtls:""=a')),
    (["--tls-client-ca", "CA"], "tls-cert"),
    (["--tls-client-ca", "/nonexistent", *"--tls-cert CERT --tls-key KEY".split()], "/nonexistent"),
    (["--tls-client-ca", "KEY", *"--tls-cert CERT --tls-key KEY".split()], "no certificate"),
    (["--tls-client-ca", "CA", *"--tls-cert CERT --tls-key KEY".split(), "--prisme-sources",
      'mtls:"CN=a"'], "no source"),
    (["--tls-client-ca", "CA", *"--tls-cert CERT --tls-key KEY".split(), "--prisme-sources",
      'mtls:"CN=a=b'], "no source"),
])
def test_p28_settings_that_cannot_be(place, ours, flags, said):
    words = [{"CA": ours.cert, "CERT": place / "server.crt", "KEY": place / "server.key"}.get(w, w)
             for w in flags]
    one = Server(*words)
    try:
        one.launch()
        assert one.process.wait(30) in (2, 3)
        assert said in one.log()
    finally:
        one.discard()
