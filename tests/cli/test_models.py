"""[model NAME] and the flags for the only one. A key is shown nowhere."""

import os
import re

import pytest

from support import retort
from test_config import check, refused

pytestmark = pytest.mark.once

SECTIONS = """
[server]
model-timeout = 30
model-tenants = acme=fast, beta=local
[model fast]
api = anthropic
url = https://api.example
name = big-1
key = sk-first-secret
images = yes
[model local]
url = http://127.0.0.1:8080/v1
timeout = 5m
"""


def shown(*args, **env):
    status, out, err = retort.call("serve", "--check-config", *args, env={**os.environ, **env})
    return status, out.decode() + err


def test_sections(tmp_path):
    found = check(file=SECTIONS, tmp_path=tmp_path)
    fast, local = found["[model fast]"], found["[model local]"]
    assert (fast["api"], fast["url"], fast["name"], fast["images"], fast["timeout"]) == \
        ("anthropic", "https://api.example", "big-1", "yes", "30")
    assert (local["api"], local["timeout"], local["text-only"]) == ("openai", "5m", "no")
    assert "name" not in local


def test_flags_are_for_one_model():
    found = check("--model-url", "http://127.0.0.1:8080/v1", "--model-text-only", "--model",
                  "default", RETORT_MODEL_API="anthropic")
    assert found["[model default]"]["api"] == "anthropic"
    assert found["[model default]"]["text-only"] == "yes"
    assert not any(s.startswith("[model") for s in check())


def test_what_is_shown_can_be_read_again(tmp_path):
    path = tmp_path / "first.ini"
    path.write_text(SECTIONS)
    _, first = shown("--config", path)
    second = tmp_path / "second.ini"
    second.write_text(first)
    assert shown("--config", second)[1].split("[server]")[1].replace(
        "; key              = none", "") == first.split("[server]")[1].replace(
        "; key              = set, and not shown", "").replace("; key              = none", "")


SECRET = re.compile(r"(?<!node-)secret")  # the word in each key here, and in the name of one setting


def test_a_key_is_never_shown(tmp_path):
    path = tmp_path / "retort.ini"
    path.write_text(SECTIONS)
    status, text = shown("--config", path)
    assert status == 0 and SECRET.search(text) is None and "set, and not shown" in text
    status, text = shown("--model-url", "http://m", RETORT_MODEL_KEY="sk-second-secret")
    assert status == 0 and SECRET.search(text) is None and text.count("set, and not shown") == 2


def test_a_key_is_no_argument():
    for args in (("--model-key", "sk-secret"), ("--model-key=sk-secret",)):
        status, text = shown("--model-url", "http://m", *args)
        assert status == 2 and "others could read" in text and "sk-secret" not in text


@pytest.mark.parametrize("key", ["with blank", "line\nInjected: header", "\x7f"])
def test_a_key_that_is_none_is_refused_and_not_quoted(key):
    status, text = shown("--model-url", "http://m", RETORT_MODEL_KEY=key)
    assert status == 2 and "the key has blanks" in text and "njected" not in text
    assert "with blank" not in text


def test_one_key_is_not_told_to_several(tmp_path):
    err = refused(file=SECTIONS, tmp_path=tmp_path, RETORT_MODEL_KEY="sk-secret")
    assert "each [model NAME] says its own" in err and "sk-secret" not in err


@pytest.mark.parametrize("args, sentence", [
    (("--model-url", "ftp://m"), "url must be one such as http://127.0.0.1:8080/v1"),
    (("--model-url", "http://user:pass@m"), "without a user or a query"),
    (("--model-url", "http://m/?key=1"), "without a user or a query"),
    (("--model-url", "http://m", "--model", "x"), "there is no model x"),
    (("--model-url", "http://m", "--model-tenants", "acme"), "'acme' is not TENANT=MODEL"),
    (("--model-url", "http://m", "--model-tenants", "acme=x"), "there is no model x"),
    (("--model-url", "http://m", "--model-proxy", "m:3128"), "proxy must be a URL"),
    (("--model-url", "http://m", "--model-api", "grpc"), "'grpc' is neither openai nor anthropic"),
    (("--model", "scripted"), "there is no model scripted"),
])
def test_mistakes(args, sentence):
    err = refused(*args)
    assert sentence in err and "pass" not in err


@pytest.mark.parametrize("file, sentence", [
    ("[model a]\nmemory = 1G\n", "retort.ini:2: memory is not a model's own"),
    ("[model a]\nmodel-url = http://m\n", "retort.ini:2: model-url is not a model's own"),
    ("[model A B]\nurl = http://m\n", "'A B' is no name for a model"),
    ("[model a]\n", "model a: url must be"),
    ("[model scripted]\nurl = http://m\n", "model scripted: there is one of this name already"),
])
def test_mistakes_in_a_file(file, sentence, tmp_path):
    assert sentence in refused(file=file, tmp_path=tmp_path)


def test_scripted_can_be_the_one():
    assert check("--model-script", "-", "--model", "scripted", "--model-url", "http://m",
                 "--model-tenants", "acme=scripted")["[server]"]["model"] == "scripted"


@pytest.mark.parametrize("content, sentence", [(None, "cannot read key-file"),
                                               ("\n", "is empty")])
@pytest.mark.parametrize("command", ["serve", "mcp"])
def test_a_key_file_that_is_none(content, sentence, command, tmp_path):
    path = tmp_path / "key"
    if content is not None:
        path.write_text(content)
    args = ["--listen", "0"] if command == "serve" else []
    status, _, err = retort.call(command, *args, "--state", tmp_path / "state", "--model-url",
                                 "http://127.0.0.1:1", "--model-key-file", path)
    assert status == 2 and sentence in err
