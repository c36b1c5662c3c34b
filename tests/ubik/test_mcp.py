"""code_execution over MCP: the client's own model in both eras, progress, cancelling, questions."""

import json
import threading

import pytest
from account import House
from support.mcp import Legacy, Modern, RpcError, text_of
from support.script import simple
from support.server import Server
from support.stdio import Local

SAMPLE = "sampling/createMessage"
PATH = "/ubik/mcp"
KEYS = {"sandbox_id", "plan", "logs", "total_rounds", "generated_files", "artifacts",
        "execution_id"}


PIXEL = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5E"
         "rkJggg==")


@pytest.fixture(scope="module")
def bare():
    """A server without a model, and without keys."""
    with Server() as one:
        yield one


@pytest.fixture(scope="module")
def played():
    with Server("--model-script", "-") as one:
        yield one


class Brain:
    """A client's model: a plan, then each piece of code, then the end."""

    def __init__(self, *codes, answer="It is done."):
        self.codes, self.answer, self.asked = list(codes), answer, []

    def say(self, params, *blocks):
        content = list(blocks) if "tools" in params else blocks[0]
        return {"role": "assistant", "model": "brain", "content": content,
                "stopReason": "toolUse" if blocks[0]["type"] == "tool_use" else "endTurn"}

    def use(self, name, **input):
        return {"type": "tool_use", "id": f"call_{len(self.asked)}", "name": name, "input": input}

    def __call__(self, params):
        self.asked.append(params)
        tools, number = "tools" in params, len(self.asked) - 2
        if number < 0:
            return self.say(params, {"type": "text", "text": '{"steps": ["compute it"]}'})
        if number < len(self.codes):
            code = self.codes[number]
            return self.say(params, self.use("run_python", code=code) if tools else
                            {"type": "text", "text": f"```python\n{code}\n```"})
        return self.say(params, self.use("finish", answer=self.answer) if tools else
                        {"type": "text", "text": "FINAL: " + self.answer})


CAPABILITIES = {"with tools": {"sampling": {"tools": {}}}, "without": {"sampling": {}}}


@pytest.fixture(params=[Legacy, Modern])
def era(request):
    return request.param


def connect(era, server, **more):
    client = era(server, path=more.pop("path", PATH), **more)
    return client.initialize() if era is Legacy else client


# --- L17: sampling ---


@pytest.mark.parametrize("tools", CAPABILITIES)
def test_l17_the_clients_own_model(bare, era, tools):
    brain = Brain("print(6 * 7)", answer="It is 42.")
    client = connect(era, bare, capabilities=CAPABILITIES[tools], answers={SAMPLE: brain})
    result = client.call("code_execution", request="What is 6 * 7?", context="Be exact.")
    outputs = result["structuredContent"]
    assert not result.get("isError") and KEYS <= set(outputs)
    assert outputs["answer"] == "It is 42." and outputs["status"] == "completed"
    assert "STDOUT:\n42\n" in outputs["logs"] and "It is 42." in text_of(result)
    for params in brain.asked:
        assert set(params) <= {"messages", "systemPrompt", "maxTokens", "modelPreferences", "tools",
                               "toolChoice", "stopSequences"}
        assert params["modelPreferences"] == {"intelligencePriority": 0.8, "speedPriority": 0.3}
        assert isinstance(params["maxTokens"], int) and params["systemPrompt"]
        assert "What is 6 * 7?" in json.dumps(params) and "Be exact." in json.dumps(params)
        assert ("tools" in params) is ("toolChoice" in params)
        check_messages(params)
    assert "tools" not in brain.asked[0], "a plan needs none"
    assert ("tools" in brain.asked[1]) is (tools == "with tools")


def check_messages(params):
    """Every use of a tool is followed by a message of results, and of nothing else."""
    blocks = [m["content"] if isinstance(m["content"], list) else [m["content"]]
              for m in params["messages"]]
    for at, (message, content) in enumerate(zip(params["messages"], blocks)):
        assert message["role"] in ("user", "assistant") and content
        kinds = {b["type"] for b in content}
        assert "tools" in params or kinds <= {"text", "image"}
        uses = [b["id"] for b in content if b["type"] == "tool_use"]
        if uses:
            assert [b["toolUseId"] for b in blocks[at + 1]] == uses
            assert params["messages"][at + 1]["role"] == "user"
        if "tool_result" in kinds:
            assert kinds == {"tool_result"}


def test_l17_state_is_kept_between_calls(bare, era):
    first = connect(era, bare, capabilities=CAPABILITIES["with tools"],
                    answers={SAMPLE: Brain("x = 41; print(x)")}).call(
                        "code_execution", request="keep")["structuredContent"]
    again = connect(era, bare, capabilities=CAPABILITIES["with tools"],
                    answers={SAMPLE: Brain("print(x + 1)")}).call(
                        "code_execution", request="use", sandbox_id=first["sandbox_id"])
    assert "STDOUT:\n42\n" in again["structuredContent"]["logs"]


def test_l17_a_person_may_refuse(bare):
    client = connect(Legacy, bare, capabilities={"sampling": {}})
    with client.begin("tools/call", {"name": "code_execution", "arguments": {"request": "x"}}) as e:
        question = e.until(SAMPLE)
        client.post({"jsonrpc": "2.0", "id": question["id"],
                     "error": {"code": -1, "message": "User rejected"}}).close()
        result = e.reply().result
    assert result["isError"] and "User rejected" in text_of(result)
    assert result["structuredContent"]["total_rounds"] == 0


@pytest.mark.parametrize("answer", [{}, {"content": 5}, {"content": []}, {"content": {"type": "x"}},
                                    {"content": [{"type": "tool_use"}]}])
def test_l17_answers_that_are_none(bare, answer):
    client = connect(Modern, bare, capabilities={"sampling": {"tools": {}}},
                     answers={SAMPLE: lambda params: answer})
    result = client.call("code_execution", request="x")
    assert result["structuredContent"]["total_rounds"] == 0


class Steps:
    """A modern client that goes step by step, and can go back."""

    def __init__(self, server, request="x", **more):
        self.brain = Brain("print(6 * 7)", answer="It is 42.")
        self.client = Modern(server, path=PATH, capabilities=CAPABILITIES["with tools"], **more)
        self.params = {"name": "code_execution", "arguments": {"request": request}}

    def first(self):
        return self.client.ask("tools/call", self.params).result

    def answer_to(self, result):
        return {"requestState": result["requestState"],
                "inputResponses": {"llm": self.brain(result["inputRequests"]["llm"]["params"])}}

    def send(self, **more):
        return self.client.ask("tools/call", {**self.params, **more})


def test_l17_modern_transcript(bare):
    steps = Steps(bare)
    one = steps.first()
    assert set(one) >= {"resultType", "inputRequests", "requestState"}
    assert one["resultType"] == "input_required"
    [(key, question)] = one["inputRequests"].items()
    assert key == "llm" and question["method"] == SAMPLE and set(question) == {"method", "params"}

    # Without an answer the same is asked again.
    same = steps.send(requestState=one["requestState"]).result
    assert same["inputRequests"] == one["inputRequests"]

    told = steps.answer_to(one)
    two = steps.send(**told).result
    assert two["inputRequests"] != one["inputRequests"]
    # The answer comes twice, as if its result had been lost: the same step comes of it.
    again = steps.send(**told).result
    assert again["inputRequests"] == two["inputRequests"]

    three = steps.send(**steps.answer_to(again)).result
    # What was answered before the last question is refused.
    assert "used before" in steps.send(**told).refused(200, -32602)["message"]
    last = steps.answer_to(three)
    done = steps.send(**last).result
    assert done["structuredContent"]["answer"] == "It is 42."
    assert done["structuredContent"]["total_rounds"] == 1, "nothing ran twice"
    repeated = steps.send(**last).result
    assert repeated["structuredContent"] == done["structuredContent"]


def test_l17_forged_states_are_refused(bare):
    steps = Steps(bare)
    one = steps.first()
    told = steps.answer_to(one)
    state = told["requestState"]
    other = "B" if state[0] == "A" else "A"  # one state of 64 begins with either
    for forged in (state[:-8] + "retort==", other + state[1:], state[::-1], "", "e30=", 7):
        steps.send(**{**told, "requestState": forged}).refused(200, -32602)
    # For another request, even from the same client.
    other = {"name": "code_execution", "arguments": {"request": "another"}}
    steps.client.ask("tools/call", {**other, **told}).refused(200, -32602)
    assert steps.send(**told).result["resultType"] == "input_required", "and the true one is good"


def test_l17_states_are_of_one_key():
    with House("--ready", "1") as house:
        steps = Steps(house.server, key=house.key)
        told = steps.answer_to(steps.first())
        steps.client.key = house.other
        steps.send(**told).refused(200, -32602)
        steps.client.key = house.key
        assert steps.send(**told).result["resultType"] == "input_required"


def test_l17_two_at_once(bare):
    results = [None] * 4

    def run(i):
        client = connect(Modern if i % 2 else Legacy, bare, capabilities={"sampling": {}},
                         answers={SAMPLE: Brain(f"print({i} + 100)")})
        results[i] = client.call("code_execution", request=f"number {i}")["structuredContent"]

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, found in enumerate(results):
        assert f"STDOUT:\n{i + 100}\n" in found["logs"]
    assert len({found["sandbox_id"] for found in results}) == 4


# --- without the client's model ---


def test_no_model_is_said(bare, era):
    result = connect(era, bare).call("code_execution", request="x")
    assert result["isError"] and "NoModelConfigured" in text_of(result)
    code = connect(era, bare).call("python_interpreter", code="print(6 * 7)")
    assert "STDOUT:\n42\n" in code["structuredContent"]["logs"] and not code.get("isError")


def test_a_model_of_ours_comes_first(played, era):
    client = connect(era, played, capabilities={"sampling": {}})
    result = client.call("code_execution", request=simple("print(6 * 7)", "It is 42."))
    assert result["structuredContent"]["answer"] == "It is 42."


def test_a_model_that_reads_the_text_hears_of_doubts(bare, era):
    """structuredContent has them; many clients show their model the text alone."""
    def told(*codes, answer):
        brain = Brain(*codes, answer=answer)
        result = connect(era, bare, capabilities=CAPABILITIES["with tools"], answers={SAMPLE: brain}).call("code_execution", request="x")
        return [c["text"] for c in result["content"]][1]

    assert told(answer="The error is 1.58.") == "status: incomplete. No run that went well stands behind the answer. No run has printed 1.58."
    assert told("print(5)", answer="It is 77.3 or 19.") == "No run has printed 77.3, 19."
    assert told("print(5)", answer="See `my sums.csv`.") == "status: incomplete. There is no file my sums.csv."
    assert told("print(5)", answer="It is 5.").startswith("INFO: Started")


def test_progress(played, era):
    client = connect(era, played)
    reply = client.ask("tools/call", {
        "name": "code_execution", "_meta": {"progressToken": "p"},
        "arguments": {"request": simple("print('step one', flush=True)\nimport time; time.sleep(.5)\n"
                                        "print('step two')")}})
    told = reply.of("notifications/progress")
    assert [t["progress"] for t in told] == sorted({t["progress"] for t in told})
    assert {"step one", "step two"} <= {t["message"] for t in told}
    assert reply.result["structuredContent"]["status"] == "completed"


def test_cancel(played):
    client = connect(Legacy, played)
    exchange = client.begin("tools/call", {
        "name": "code_execution", "_meta": {"progressToken": 1}, "arguments": {"request": simple(
            "open('begun', 'w'); print('begun', flush=True)\nimport time; time.sleep(60)")}}, id=77)
    for message in exchange:
        if message.get("params", {}).get("message") == "begun":
            break
    client.cancel(77)
    exchange.close()
    with played.client() as rest:
        for _ in range(600):
            page = rest.get("/ubik/api/v1/tool-executions?limit=1").expect(200).json
            if page["items"][0]["status"] == "failed":
                break
        assert page["items"][0]["error_code"] == "Cancelled"


def test_shown_beside_our_own_tools(bare, played, era):
    assert "code_execution" not in connect(era, bare, path="/mcp").tools()
    assert "code_execution" in connect(era, bare, path="/mcp", capabilities={"sampling": {}}).tools()
    assert "code_execution" in connect(era, played, path="/mcp").tools()
    result = connect(era, played, path="/mcp").call("code_execution", request=simple("print(1)"))
    assert result["structuredContent"]["status"] == "completed"


def test_pictures_and_files(played, era):
    code = ("from IPython.display import Image, display\nimport base64\n"
            f"display(Image(base64.b64decode('{PIXEL}')))\nopen('a.csv', 'w').write('x')")
    client = connect(era, played)
    result = client.call("python_interpreter", code=code)
    [picture] = [c for c in result["content"] if c["type"] == "image"]
    assert picture["data"] == PIXEL and picture["mimeType"] == "image/png"
    [table] = result["structuredContent"]["generated_files"]
    assert table["url"].startswith(f"http://localhost:{played.port}/ubik/api/v1/assets/tools/")
    assert table["url"] in text_of(result)


def test_both_addresses(bare, era):
    for path in ("/ubik/mcp", "/mcp/ubik"):
        tools = connect(era, bare, path=path).tools()
        assert set(tools) == {"code_execution", "python_interpreter"}
        assert tools["code_execution"]["inputSchema"]["required"] == ["request"]


def test_arguments_are_checked(bare, era):
    for arguments in ({}, {"request": 5}, {"request": "x", "sandbox": 1}):
        assert connect(era, bare).call("code_execution", **arguments)["isError"]


def test_approval_by_the_clients_user(era):
    with Server("--model-script", "-", "--approval", "always_ask") as server:
        said = []

        def answer(approve):
            def form(params):
                said.append(params)
                return {"action": "accept", "content": {"approve": approve}}
            return form

        for approve in (True, False):
            client = connect(era, server, capabilities={"elicitation": {}},
                             answers={"elicitation/create": answer(approve)})
            result = client.call("python_interpreter", code="print(6 * 7)")
            assert ("STDOUT:\n42\n" in result["structuredContent"]["logs"]) is approve
        assert "print(6 * 7)" in said[0]["message"]
        assert said[0]["requestedSchema"]["required"] == ["approve"]


def test_a_state_of_no_errand(bare):
    """One that was signed for a question of another kind of call."""
    steps = Steps(bare)
    told = steps.answer_to(steps.first())
    params = {"name": "python_interpreter", "arguments": {"code": "1"}, **told}
    with pytest.raises(RpcError):
        steps.client.request("tools/call", params)


# --- over standard input and output ---


def test_stdio():
    with Local("--tools", "ubik", "--model-script", "-") as local:
        local.initialize()
        assert {t["name"] for t in local.request("tools/list")["tools"]} == {
            "code_execution", "python_interpreter"}
        result = local.call("code_execution", request=simple("print(6 * 7)", "It is 42."))
        assert result["structuredContent"]["answer"] == "It is 42."
        made = local.call("python_interpreter", code="open('a b.csv', 'w').write('x,y')")
        [file] = made["structuredContent"]["generated_files"]
        [found] = local.request("resources/read", {"uri": file["url"]})["contents"]
        assert found["text"] == "x,y", "where HTTP does not lead, resources do"


def test_stdio_samples():
    with Local("--tools", "ubik", capabilities={"sampling": {"tools": {}}}) as local:
        local.initialize()
        brain = Brain("print(6 * 7)", answer="It is 42.")
        id = local.begin_call("code_execution", request="What is 6 * 7?")

        def questions():
            return [m for m in local.heard if isinstance(m, dict) and m.get("method") == SAMPLE]

        while len(brain.asked) < 3:
            local.wait(lambda: len(questions()) > len(brain.asked), "a question")
            message = questions()[len(brain.asked)]
            local.send({"jsonrpc": "2.0", "id": message["id"], "result": brain(message["params"])})
        assert local.result(id)["structuredContent"]["answer"] == "It is 42."
