"""Nodes that show each other certificates: what one takes from another, whom it takes for a node at all."""

import shutil
import ssl

import pytest

from support import retort, s3
from support.authority import Authority
from support.nodes import Nodes
from support.server import folder

pytestmark = pytest.mark.once

HERE = "IP:127.0.0.1,DNS:localhost"
NOT_OURS = "does not take this one for a node of ours"
SAID = {"of another authority": "issuer is unknown", "expired": "expired certificate",
        "for servers alone": "does not match the intended purpose"}
PAST = {"begin": "20200101000000Z", "end": "20200102000000Z"}


@pytest.fixture(scope="module")
def place():
    one = folder()
    yield one
    shutil.rmtree(one)


@pytest.fixture(scope="module")
def ours(place):
    return Authority(place, "ours")


@pytest.fixture(scope="module")
def theirs(place):
    return Authority(place, "theirs")


@pytest.fixture(scope="module")
def served(ours):
    """What each node shows to whoever connects to it."""
    return ours.sign("served", "/CN=node", purpose="serverAuth", names=HERE)


@pytest.fixture(scope="module")
def shown(ours):
    """What a node shows to others."""
    return ours.sign("shown", "/CN=node")


def two(postgres, blobs, ours, served, first, second, clients=None):
    """Two nodes that share a secret; each is (certificate, key) to show, or None."""
    nodes = Nodes(postgres, blobs, 2, lease=20)
    tls = ssl.create_default_context(cafile=ours.cert)
    for node, pair in zip(nodes.servers, (first, second)):
        node.tls = tls
        node.flags[node.flags.index("--node-url") + 1] = f"https://{node.listen}"
        node.flags += ["--tls-cert", str(served[0]), "--tls-key", str(served[1]), "--node-ca", str(ours.cert)]
        if clients:
            node.flags += ["--tls-client-ca", str(clients.cert)]
        if pair:
            node.flags += ["--node-cert", str(pair[0]), "--node-key", str(pair[1])]
    return nodes


def asks_at_both(nodes):
    """A tenant that lives on the first node asks both: what the second says."""
    with nodes[0].client() as client:
        client.get("/v1/sessions").expect(200)
    assert nodes.home("local") == 0
    with nodes[1].client() as client:
        return client.post("/v1/sessions", {})


def refused_with(nodes, words):
    """Whatever a busy machine has it say first: nobody gets more than 503."""
    def is_said():
        answer = asks_at_both(nodes)
        assert answer.status == 503 and answer.headers["retry-after"], answer
        return words in answer.text
    retort.wait_until(is_said, words, retort.SECONDS)


def test_each_has_one(postgres, blobs, ours, theirs, served, shown):
    """Also where clients may have certificates of another authority."""
    with two(postgres, blobs, ours, served, shown, shown, clients=theirs) as nodes:
        asks_at_both(nodes).expect(201)
        assert "does not take this node" not in nodes[1].log()


@pytest.mark.parametrize("wrong", ["missing", "of another authority", "expired", "for servers alone"])
def test_one_has_none_that_is_good(postgres, blobs, ours, theirs, served, shown, wrong):
    pair = {"missing": lambda: None,
            "of another authority": lambda: theirs.sign("stranger", "/CN=node"),
            "expired": lambda: ours.sign("expired", "/CN=node", **PAST),
            "for servers alone": lambda: served}[wrong]()
    with two(postgres, blobs, ours, served, shown, pair) as nodes:
        refused_with(nodes, NOT_OURS)
        assert "does not take this node for one of its own" in nodes[1].log()
        assert ("warn: other nodes do not take node-cert" in nodes[1].log()) == (wrong != "missing")
        assert SAID.get(wrong, "") in nodes[1].log()
        with nodes[0].client() as client:  # nothing was done
            assert client.get("/v1/sessions").json["data"] == []


def test_clients_are_no_nodes(postgres, blobs, ours, theirs, served, shown):
    """An authority of clients vouches for no node, nor one of nodes for a client."""
    stranger = theirs.sign("client", "/CN=client")
    with two(postgres, blobs, ours, served, shown, stranger, clients=theirs) as nodes:
        refused_with(nodes, NOT_OURS)


def test_another_secret(postgres, blobs, ours, served, shown):
    """A good certificate alone makes no node."""
    with two(postgres, blobs, ours, served, shown, shown) as nodes:
        nodes[1].stop()
        other = nodes.place / "other"
        other.write_text("x" * 40)
        nodes[1].flags[nodes[1].flags.index("--node-secret-file") + 1] = str(other)
        nodes[1].start()
        refused_with(nodes, NOT_OURS)


def test_a_node_whose_own_certificate_is_not_trusted(postgres, blobs, ours, theirs, shown):
    served = theirs.sign("strange-server", "/CN=node", purpose="serverAuth", names=HERE)
    nodes = two(postgres, blobs, ours, served, shown, shown)
    for node in nodes.servers:
        node.tls = ssl.create_default_context(cafile=theirs.cert)
    with nodes:
        refused_with(nodes, "no certificate that can be trusted")
        assert f"{nodes[0].listen} has no certificate that can be trusted" in nodes[1].log()


@pytest.mark.parametrize("flags, said", [
    (["--node-cert", "x"], "node-key is missing"), (["--node-key", "x"], "node-cert is missing"),
    (["--node-cert", "x", "--node-key", "x"], "node-cert needs node-ca, tls-cert and a node-url with https://")])
def test_settings_that_belong_together(nodes_flags, flags, said):
    code, _, err = retort.call("serve", *nodes_flags, *flags)
    assert code != 0 and said in err


def test_the_key_of_another_certificate(monkeypatch, nodes_flags, ours, served, shown):
    for name, value in s3.ENV.items():
        monkeypatch.setenv(name, value)
    nodes_flags[-1].write_text("x" * 40)
    nodes_flags[nodes_flags.index("--node-url") + 1] = "https://127.0.0.1:1"
    code, _, err = retort.call("serve", *nodes_flags, "--tls-cert", served[0], "--tls-key", served[1], "--node-ca",
                               ours.cert, "--node-cert", shown[0], "--node-key", served[1])
    assert code == 2 and f"node-cert {shown[0]} with node-key {served[1]}: The certificate and the given key" in err


@pytest.fixture
def nodes_flags(tmp_path):
    return ["--listen", "127.0.0.1:0", "--state", tmp_path / "state", "--store", "postgresql:///none", "--blobs",
            "s3://none/none", "--node-url", "http://127.0.0.1:1", "--node-secret-file", tmp_path / "secret"]
