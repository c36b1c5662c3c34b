"""The skill that comes with the program, and what the program says of itself."""

import hashlib
import re
from pathlib import Path

import pytest
from support.mcp import RpcError

pytestmark = pytest.mark.once

FOLDER = Path(__file__).resolve().parents[2] / "skills" / "code-interpreter"
SKILL = "skill://code-interpreter/SKILL.md"
RECIPES = "skill://code-interpreter/references/recipes.md"
PROFILE_TABLE = "skill://code-interpreter/scripts/profile_table.py"


def refused(client, method, **params):
    with pytest.raises(RpcError) as e:
        client.request(method, params)
    assert e.value.code == -32602
    return e.value


def test_declared_in_the_modern_era(legacy, modern):
    declared = modern.request("server/discover")["capabilities"]["extensions"]
    assert declared["io.modelcontextprotocol/skills"] == {"directoryRead": True}
    assert "extensions" not in legacy.info["capabilities"]
    legacy.ask("skills/list").refused(200, -32601)


def test_list_and_get(modern):
    result = modern.request("skills/list")
    assert result["cacheScope"] == "public" and result["ttlMs"] >= 0
    (skill,) = result["skills"]
    assert modern.request("skills/get", {"uri": SKILL})["skill"] == skill
    assert skill["uri"] == SKILL and skill["frontmatter"]["name"] == "code-interpreter"
    assert 50 < len(skill["frontmatter"]["description"]) <= 1024
    for row in skill["resources"]:
        data = (FOLDER / row["uri"].removeprefix("skill://code-interpreter/")).read_bytes()
        assert row["digest"] == "sha256:" + hashlib.sha256(data).hexdigest()
        assert row["size"] == len(data)
    assert [row["uri"] for row in skill["resources"]] == [SKILL, RECIPES, PROFILE_TABLE]


def test_files_are_those_of_the_source_tree(either):
    for uri in (SKILL, RECIPES):
        (found,) = either.request("resources/read", {"uri": uri})["contents"]
        assert found["mimeType"] == "text/markdown"
        assert found["text"] == (FOLDER / uri.removeprefix("skill://code-interpreter/")).read_text()


def test_listed_among_resources(either):
    rows = {r["uri"]: r for r in either.request("resources/list")["resources"]}
    assert rows[SKILL]["name"] == "code-interpreter" and rows[SKILL]["description"]
    assert RECIPES in rows


def test_folders(modern):
    for uri in ("skill://code-interpreter", "skill://code-interpreter/"):
        found = modern.request("resources/directory/read", {"uri": uri})["resources"]
        assert {r["uri"]: r["mimeType"] for r in found} == {
            SKILL: "text/markdown", "skill://code-interpreter/references": "inode/directory",
            "skill://code-interpreter/scripts": "inode/directory"}
    found = modern.request("resources/directory/read", {"uri": "skill://code-interpreter/references"})
    assert [r["uri"] for r in found["resources"]] == [RECIPES]


@pytest.mark.parametrize("uri", [SKILL, "skill://", "skill:", "skill://code", "skill://other", "", None, 5,
                                 "ui://retort", "skill://code-interpreter//", "retort://sessions"])
def test_what_is_no_folder(modern, uri):
    refused(modern, "resources/directory/read", **({} if uri is None else {"uri": uri}))


@pytest.mark.parametrize("uri", [RECIPES, "skill://other/SKILL.md", "", None, 5, "skill://code-interpreter"])
def test_what_is_no_skill(modern, uri):
    refused(modern, "skills/get", **({} if uri is None else {"uri": uri}))


def test_instructions_name_the_skill(legacy, modern):
    for said in (legacy.info["instructions"], modern.request("server/discover")["instructions"]):
        assert SKILL in said
        assert len(said.encode()) <= 1536


def test_the_skill_names_tools_and_arguments_that_there_are(either):
    text = (FOLDER / "SKILL.md").read_text()
    tools = either.tools()
    arguments = {name for tool in tools.values() for name in tool["inputSchema"].get("properties", {})}
    named = set(re.findall(r"`([a-z]+_[a-z_]+)(?:`|: )", text))
    assert {"run_code", "read_file", "get_execution"} <= named
    assert named <= set(tools) | arguments
