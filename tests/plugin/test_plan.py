"""The plan that is shown before anything starts: each server's mode, its tools, and warnings."""

from __future__ import annotations

import pytest

from tests.plugin.eval_project import (
    EvalProject,
    Json,
    Session,
    answer,
    call,
    case,
    desk,
    listed,
    tool,
    write,
)

GOOD = case("good", answer("ok"))


def plan_of(session: Session) -> list[str]:
    """Return the lines that tell the plan."""
    lines = session.out.splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("eval "))
    rest = [at for at, line in enumerate(lines) if at > first and line[:2] != "  "]
    more = [at for at in rest if not lines[at].startswith("eval ")]
    return lines[first : more[0]]


def shown_plan(project: EvalProject, *args: str) -> list[str]:
    """Show the plan and start nothing."""
    session = project.run("--mst", "--collect-only", *args)
    assert session.code == 0, session.text
    assert session.folders == ()
    assert project.desk_calls == []
    return plan_of(session)


def test_each_server_is_shown_with_its_mode_and_what_its_tools_are(project: EvalProject) -> None:
    project.eval(
        GOOD,
        servers={
            "desk": listed(tool("find"), tool("put", hint=False), tool("odd", hint=None)),
            "shelf": listed(tool("find"), tool("look")),
            "legacy": listed(tool("put", hint=None), tool("odd", hint=None)),
        },
        writes={"desk": "simulated", "shelf": "planned", "legacy": "unguarded"},
    )
    (line,) = shown_plan(project)
    assert line == (
        "eval desk: desk simulated (1 read, 1 declared write, 1 held for want of a hint), "
        "shelf read-only (2 reads, 0 declared writes, 0 held for want of a hint), "
        "legacy UNGUARDED (0 reads, 0 declared writes, 2 held for want of a hint)"
    )


def test_a_direct_server_is_shown_as_such(project: EvalProject) -> None:
    project.eval(
        GOOD,
        servers={
            "docs": listed(tool("find"), direct=True),
            "desk": listed(tool("put", hint=False), direct=True),
        },
        writes={"desk": "unguarded"},
    )
    (line,) = shown_plan(project)
    assert "docs direct read-only (1 read, " in line
    assert "desk direct UNGUARDED (0 reads, 1 declared write, " in line


def test_a_server_that_stops_writes_itself_is_shown_with_its_mark(project: EvalProject) -> None:
    server = listed(tool("put", hint=False), plannedWriteKey="_planned")
    project.eval(GOOD, servers={"desk": server}, writes={"desk": "server-planned"})
    (line,) = shown_plan(project)
    assert "desk server-planned by _planned (0 reads, 1 declared write, " in line


def test_dispatchers_are_counted(project: EvalProject) -> None:
    dispatchers = {"run_tool": {"tool": "name"}, "run_batch": {"tool": "name", "batch": "calls"}}
    server = listed(tool("run_tool"), tool("run_batch"), tool("find"), dispatchers=dispatchers)
    project.eval(GOOD, servers={"desk": server})
    (line,) = shown_plan(project)
    assert line == (
        "eval desk: desk planned (1 read, 2 declared writes, 0 held for want of a hint, "
        "2 dispatchers)"
    )


def test_live_is_shown_large_and_where_it_is_stopped(project: EvalProject) -> None:
    step = {"server": "desk", "tool": "put"}
    checked = {"outcome": [{"server": "desk", "tool": "find", "containsText": "{{trial.id}}"}]}
    project.eval(
        GOOD,
        case("writes", answer("ok"), expected=checked) | {"input": "put {{trial.id}}"},
        servers={"desk": listed(tool("find"), tool("put", hint=False))},
        writes={"desk": "live"},
        setup=[step],
        cleanup=[step],
    )
    first, second, *_ = shown_plan(project, "--allow-live-writes")
    assert "desk LIVE (1 read, 1 declared write, " in first
    assert second == "  live writes are stopped where no outcome is checked: good"


@pytest.mark.parametrize(("queue", "warned"), [("all", True), ("q-{{trial.id}}", False)])
def test_a_cleanup_that_is_not_of_the_attempt_is_warned_of(
    project: EvalProject, queue: str, *, warned: bool
) -> None:
    step = {"server": "desk", "tool": "put", "arguments": {"queue": "{{trial.id}}"}}
    checked = {"outcome": [{"server": "desk", "tool": "find", "containsText": "{{trial.id}}"}]}
    project.eval(
        case("writes", answer("ok"), expected=checked) | {"input": "put {{trial.id}}"},
        servers={"desk": listed(tool("find"), tool("put", hint=False))},
        writes={"desk": "live"},
        setup=[step],
        cleanup=[{**step, "arguments": {"queue": queue}}, {"server": "desk", "tool": "put"}],
    )
    said = "  warning: no step of cleanup has {{trial.id}}, so that it may take away what others"
    plan = shown_plan(project, "--allow-live-writes")
    assert any(line.startswith(said) for line in plan) is warned


def test_the_write_cases_of_an_unguarded_variant_are_named(project: EvalProject) -> None:
    writes = case("writes", answer("ok"), expected={"writes": []})
    project.eval(
        GOOD,
        writes,
        case("skipped", answer("ok"), expected={"writes": []}, skip="not yet"),
        servers={"old": listed(tool("put")), "new": listed(tool("put", hint=False))},
        writes={"new": "unguarded"},
        variants=[{"name": "a", "servers": ["old"]}, {"name": "b"}],
    )
    assert "  unguarded write cases of b: writes" in shown_plan(project)
    assert "  unguarded write cases: writes" in shown_plan(project, "--mst-variant", "b")
    assert not [line for line in shown_plan(project, "--mst-variant", "a") if "unguarded" in line]


def test_a_server_that_cannot_be_used_is_shown_with_its_reason(project: EvalProject) -> None:
    project.eval(GOOD, servers={"desk": desk("exit"), "shelf": listed(tool("look"))})
    (line,) = shown_plan(project)
    assert "desk cannot be used: " in line
    assert "shelf read-only (" in line


def test_variants_with_the_same_servers_share_a_line_and_others_have_their_own(
    project: EvalProject,
) -> None:
    project.eval(
        GOOD,
        servers={"desk": listed(tool("put", hint=False)), "shelf": listed(tool("create_a"))},
        variants=[
            {"name": "a"},
            {"name": "b", "model": "other"},
            {"name": "c", "servers": ["shelf"]},
        ],
    )
    first, second, warning = shown_plan(project)
    assert first.startswith("eval desk [a, b]: desk planned (")
    assert second.startswith("eval desk [c]: shelf read-only (")
    assert "shelf hints that these only read" in warning


MANAGE = {"enum": ["get", "create", "delete"]}


@pytest.mark.parametrize("processes", ["0", "2"])
def test_tools_that_look_like_writes_and_are_hinted_reads_are_warned_of_once(
    project: EvalProject, processes: str
) -> None:
    tools = [tool(name) for name in ("get_a", "create_a", "delete_a")]
    server = listed(*tools, tool("manage", action=MANAGE), tool("send", hint=False))
    project.eval(GOOD, servers={"desk": server})
    session = project.run("--mst", "-n", processes)
    assert session.code == 0
    assert plan_of(session)[1:] == [
        "  warning: desk hints that these only read, and so they are let through: create_a, "
        "delete_a, manage (action: create, delete); name those that write in "
        "servers.desk.alwaysWriteTools, the others in readOnlyTools"
    ]
    assert session.count("hints that these only read") == 1
    (stored,) = session.run.plan["variants"][0]["servers"]
    assert stored["suspicious"] == ["create_a", "delete_a", "manage"]


def test_a_long_list_of_such_tools_is_cut(project: EvalProject) -> None:
    server = listed(*(tool(f"create_{number}") for number in range(20)))
    project.eval(GOOD, servers={"desk": server})
    _, warning = shown_plan(project)
    assert "create_7 and 12 more; name those" in warning
    assert "create_8" not in warning


def test_the_override_lists_settle_such_tools_and_end_the_warning(project: EvalProject) -> None:
    tools = [tool(name) for name in ("get_a", "create_a", "delete_a", "run_report")]
    named: Json = {"alwaysWriteTools": ["create_a", "delete_a"], "readOnlyTools": ["run_report"]}
    expected = {"writes": {"calls": [write("create_a"), write("delete_a")], "exclusive": True}}
    steps = [call(name) for name in ("create_a", "delete_a", "run_report")]
    project.eval(
        case("writes", *steps, answer("ok"), expected=expected),
        servers={"desk": listed(*tools, **named)},
    )
    session = project.run("--mst")
    assert session.code == 0, session.text
    assert "warning: desk" not in session.out
    assert project.desk_calls == ["run_report"]
    assert "suspicious" not in session.run.plan["variants"][0]["servers"][0]


def test_without_them_such_a_tool_is_let_through_and_in_the_trace(project: EvalProject) -> None:
    steps = [call("replace_symbol"), answer("ok")]
    project.eval(case("edits", *steps), servers={"desk": listed(tool("replace_symbol"))})
    session = project.run("--mst")
    assert session.code == 0, session.text
    assert "hints that these only read" in session.out
    assert project.desk_calls == ["replace_symbol"]
    (event,) = session.run.trace_file("edits")["trace"]["events"]
    assert event["name"] == "replace_symbol"


WRITING_SQL = [
    "WITH x AS (SELECT 1) DELETE FROM t",
    "/* a */ INSERT INTO t VALUES (1)",
    "select 1; drop table t",
    "SELECT 'delete'",
]


def test_a_query_tool_marked_as_write_stops_every_query(project: EvalProject) -> None:
    queries = [call("query", sql=sql) for sql in WRITING_SQL]
    tools = tool("query", sql={"type": "string"})
    project.eval(case("asks", *queries, answer("ok")), servers={"desk": listed(tools)})
    marked = listed(tools, alwaysWriteTools=["query"])
    project.eval(case("asks", *queries, answer("ok")), servers={"desk": marked}, name="marked")
    let_through = project.run("--mst", "desk.eval.json")
    assert "query (runs the sql it is given)" in let_through.out
    assert project.desk_calls == ["query"] * 4
    project.desk_log.unlink()
    stopped = project.run("--mst", "marked.eval.json")
    assert project.desk_calls == []
    assert [one["arguments"]["sql"] for one in stopped.run.writes("asks")] == WRITING_SQL


def test_the_mode_of_every_server_in_every_variant_is_stored(project: EvalProject) -> None:
    project.eval(
        GOOD,
        servers={
            "desk": listed(tool("put", hint=False)),
            "docs": listed(tool("find"), direct=True),
            "old": listed(tool("put", hint=None)),
        },
        writes={"desk": "simulated", "old": "unguarded"},
        variants=[{"name": "all"}, {"name": "few", "servers": ["docs", "desk"]}],
    )
    session = project.run("--mst")
    assert session.code == 0, session.text
    modes = {
        variant["name"]: {
            one["label"]: (one["writeMode"], one.get("direct", False)) for one in variant["servers"]
        }
        for variant in session.run.plan["variants"]
    }
    few = {"desk": ("simulated", False), "docs": ("read-only", True)}
    assert modes == {"all": few | {"old": ("unguarded", False)}, "few": few}
