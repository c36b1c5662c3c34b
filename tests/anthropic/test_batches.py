"""Message Batches: requests that are left here, and results that are fetched later."""

import json

import pytest

from api import refused
from support import retort
from support.model_server import ModelServer
from support.server import Server
from talk import Talk, body, results


def requests(*turns, **fields):
    return {"requests": [{"custom_id": f"r{i}", "params": body(t, **fields)} for i, t in enumerate(turns)]}


def create(talk, given):
    return talk.post("/v1/messages/batches", given).expect(200).json


def get(talk, batch):
    return talk.get(f"/v1/messages/batches/{batch['id']}").expect(200).json


def ended(talk, batch):
    retort.wait_until(lambda: get(talk, batch)["processing_status"] == "ended", "the end of the batch")
    return get(talk, batch)


def read(talk, batch):
    answer = talk.get(f"/v1/messages/batches/{batch['id']}/results").expect(200)
    return [json.loads(line) for line in answer.text.splitlines()]


def test_from_creation_to_deletion(talk):
    batch = create(talk, requests([[{"bash": "echo $((6 * 7))"}], [{"text": "done"}]], [[{"text": "plain"}]],
                                  [[{"fail": {"status": 400, "message": "not so"}}]]))
    assert batch["type"] == "message_batch" and batch["processing_status"] == "in_progress"
    assert batch["results_url"] is None and batch["request_counts"]["processing"] == 3
    done = ended(talk, batch)
    assert done["request_counts"] == {"succeeded": 2, "errored": 1, "canceled": 0, "expired": 0, "processing": 0}
    assert done["results_url"].endswith(f"/anthropic/v1/messages/batches/{batch['id']}/results")
    first, second, third = read(talk, batch)
    assert [r["custom_id"] for r in (first, second, third)] == ["r0", "r1", "r2"]
    assert first["result"]["type"] == "succeeded" and results(first["result"]["message"])[0]["stdout"] == "42\n"
    assert second["result"]["message"]["content"][0]["text"] == "plain"
    assert third["result"]["type"] == "errored" and "not so" in third["result"]["error"]["error"]["message"]
    assert third["result"]["error"]["request_id"].startswith("req_")
    assert talk.delete(f"/v1/messages/batches/{batch['id']}").expect(200).json == {
        "id": batch["id"], "type": "message_batch_deleted"}
    for path in ("", "/results"):
        refused(talk.get(f"/v1/messages/batches/{batch['id']}{path}"), 404)


def test_params_are_checked_when_they_run(talk):
    given = {"requests": [{"custom_id": "bad", "params": {"model": "scripted", "messages": []}},
                          {"custom_id": "streams", "params": body([[{"text": "x"}]], stream=True)}]}
    batch = ended(talk, create(talk, given))
    bad, streams = read(talk, batch)
    assert bad["result"]["error"]["error"] == {"type": "invalid_request_error", "message": "max_tokens: Field required"}
    assert streams["result"]["message"]["content"][0]["text"] == "x"


@pytest.mark.parametrize("given", [
    {}, {"requests": []}, {"requests": "x"}, {"requests": [{"params": {}}]}, {"requests": [{"custom_id": "a"}]},
    {"requests": [{"custom_id": "a b", "params": {}}]}, {"requests": [{"custom_id": "x" * 65, "params": {}}]},
    {"requests": [{"custom_id": "a", "params": {}}] * 2}, []])
def test_refused(talk, given):
    assert refused(talk.post("/v1/messages/batches", given), 400)


def test_lists_have_pages_and_no_strangers(talk, stranger):
    mine = [create(talk, requests([[{"text": str(i)}]]))["id"] for i in range(3)]
    page = talk.get("/v1/messages/batches?limit=2").expect(200).json
    assert [b["id"] for b in page["data"]] == mine[:0:-1] and page["has_more"] and page["last_id"] == mine[1]
    older = talk.get(f"/v1/messages/batches?limit=1&after_id={mine[1]}").expect(200).json
    assert [b["id"] for b in older["data"]] == [mine[0]]
    newer = talk.get(f"/v1/messages/batches?limit=5&before_id={mine[1]}").expect(200).json
    assert [b["id"] for b in newer["data"]] == [mine[2]]
    for ask, path in ((stranger.get, ""), (stranger.get, "/results"), (stranger.delete, "")):
        refused(ask(f"/v1/messages/batches/{mine[0]}{path}"), 404)
    refused(stranger.post(f"/v1/messages/batches/{mine[0]}/cancel"), 404)
    ended(talk, {"id": mine[1]})
    talk.delete(f"/v1/messages/batches/{mine[1]}").expect(200)  # its place is known all the same
    for query, want in ((f"limit=1&after_id={mine[1]}", mine[0]), (f"limit=1&before_id={mine[1]}", mine[2]), (f"limit=1&page={page['next_page']}", mine[0])):
        assert [b["id"] for b in talk.get("/v1/messages/batches?" + query).expect(200).json["data"]] == [want]
    assert not set(mine) & {b["id"] for b in stranger.get("/v1/messages/batches").expect(200).json["data"]}


def test_cancelled(talk):
    """What runs goes on to its end; what has not begun is not begun."""
    batch = create(talk, requests(*[[[{"sleep_ms": 1000}, {"text": "x"}]]] * 30))
    told = talk.post(f"/v1/messages/batches/{batch['id']}/cancel").expect(200).json
    assert told["processing_status"] in ("canceling", "ended") and told["cancel_initiated_at"]
    done = ended(talk, batch)
    counts = done["request_counts"]
    assert counts["canceled"] > 0 and counts["canceled"] + counts["succeeded"] == 30
    kinds = [r["result"]["type"] for r in read(talk, batch)]
    assert kinds.count("canceled") == counts["canceled"] and kinds.count("succeeded") == counts["succeeded"]
    again = talk.post(f"/v1/messages/batches/{batch['id']}/cancel").expect(200).json
    assert again["cancel_initiated_at"] == told["cancel_initiated_at"] and again["ended_at"] == done["ended_at"]


def test_a_killed_server_goes_on_with_it():
    """A request that was answered is not asked again; one that was not, is."""
    with ModelServer() as models:
        desk = models.desk()
        with Server("--model-url", desk.anthropic, "--model-api", "anthropic", "--preload", "") as server:
            with Talk(server) as talk:
                first = [[{"text": "first"}]]
                held = [[{"text": "held back for a while", "hold": 1}]]
                batch = create(talk, requests(first, held, [[{"fail": {}}, {"text": "third"}]]))
                cancelled = create(talk, requests(held))
                talk.post(f"/v1/messages/batches/{cancelled['id']}/cancel").expect(200)
                retort.wait_until(lambda: get(talk, batch)["request_counts"]["succeeded"] == 2, "two results")
                refused(talk.delete(f"/v1/messages/batches/{batch['id']}"), 400)  # it is under way
            asked = len(desk.requests)
            server.kill()
            desk.gate.set()
            server.start()
            with Talk(server) as talk:
                done = ended(talk, batch)
                assert done["request_counts"]["succeeded"] == 3
                assert [r["result"]["message"]["content"][0]["text"] for r in read(talk, batch)] == [
                    "first", "held back for a while", "third"]
                assert ended(talk, cancelled)["request_counts"]["canceled"] <= 1
                assert len(desk.requests) <= asked + 2


def test_a_busy_model_is_asked_again():
    with ModelServer() as models:
        desk = models.desk(faults=["429", "500"])
        with Server("--model-url", desk.openai, "--model-api", "openai", "--preload", "") as server, Talk(server) as talk:
            batch = ended(talk, create(talk, requests([[{"text": "at last"}]])))
            assert read(talk, batch)[0]["result"]["message"]["content"][0]["text"] == "at last"
            assert len(desk.requests) == 3


def test_a_clean_stop_cuts_nothing_short():
    with Server("--model-script", "-", "--preload", "") as server:
        with Talk(server) as talk:
            batch = create(talk, requests(*[[[{"sleep_ms": 400}, {"text": str(i)}], []] for i in range(20)]))
        server.stop()
        server.start()
        with Talk(server) as talk:
            assert ended(talk, batch)["request_counts"]["succeeded"] == 20
            assert [r["result"]["message"]["content"][0]["text"] for r in read(talk, batch)] == [str(i) for i in range(20)]
            assert {r["result"]["message"]["stop_reason"] for r in read(talk, batch)} == {"end_turn"}
