"""docs/clients.md: which client, which version, how many of its cases passed. Written by a whole run."""

from support import retort

PAGE = retort.REPO / "docs/clients.md"
HEAD = """# Published clients

`./dev test clients` runs each of these as it is published, unchanged, against a running server, and writes this
page. Versions are pinned in `tests/clients`. Where a client needs a model, one of ours plays a script.

| client | version | language | from | cases | passed |
|---|---|---|---|---|---|
"""
MISSING = {
    "langchain4j's `SessionsREPLTool`": "its module, `langchain4j-code-execution-engine-azure-acads`, is in their source "
                                        "and was never published to Maven Central",
}

NOTES = {
    "`dev.langchain4j:langchain4j-mcp`": "it takes text alone unless it is given a `toolResultExtractor`, as it is here",
    "`smolagents`": "its agents see the first block of a tool's answer, and no images",
    "`azure-mgmt-resource`, `@azure/arm-resources`": "deployments have packages of their own now, which are those tested",
}

rows = {}  # mark -> {test: outcome}


def note(row, test, report):
    """A test counts as what its setup and its call were. The end of a server that many tests share is no client's case."""
    if report.when == "call" or (report.when == "setup" and report.outcome != "passed"):
        rows.setdefault(row, {})[test] = report.outcome


def order(row):
    return row[2], row[0].lower(), row[1]


def table():
    lines = []
    for row in sorted(rows, key=order):
        cases = rows[row]
        passed = sum(outcome == "passed" for outcome in cases.values())
        lines.append("| `{}` | {} | {} | {} |".format(*row) + f" {len(cases)} | {passed} |")
    return "\n".join(lines) + "\n"


def page():
    missing, notes = ("".join(f"- {client}: {text}.\n" for client, text in of.items()) for of in (MISSING, NOTES))
    return f"{HEAD}{table()}\nNot to be had:\n\n{missing}\nTo be known:\n\n{notes}"


def finish(whole):
    """Writes the page after a run of everything; what to tell of it."""
    skipped = any("skipped" in cases.values() for cases in rows.values())
    if whole and not skipped:
        PAGE.write_text(page())
        return f"the matrix is in {PAGE.relative_to(retort.REPO)}"
    return "docs/clients.md stays as it is: " + ("a client was skipped" if whole else "this was not a whole run")
