"""Writes: stopped, recorded, expected or not, and how far what is said of them can be trusted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.plugin.eval_project import (
    EvalProject,
    Session,
    StoredRun,
    answer,
    call,
    case,
    claim,
    desk,
    hidden,
    write,
)

OK = answer("ok")
CASES = (
    case(
        "posts",
        call("find"),
        call("post", text="hello", to="#team"),
        answer("{{last.text}}"),
        expected={"writes": [write("post", arguments={"to": "#team"})]},
    ),
    case(
        "opens-a-ticket",
        call("open_ticket", title="it is broken"),
        answer("{{last.text}}"),
        expected={"writes": [write("open_ticket")]},
    ),
    case("tags", call("tag", name="x"), OK, expected={"writes": [write("tag")]}),
    case("expects-none", call("find"), OK, expected={"writes": []}),
    case("expects-none-and-posts", call("post"), OK, expected={"writes": []}),
    case("misses", call("find"), OK, expected={"writes": [write("post")]}),
    case(
        "posts-elsewhere",
        call("post", to="#all"),
        OK,
        expected={"writes": [write("post", arguments={"to": "#team"})]},
    ),
    case("lies", claim("post", to="#team"), OK, expected={"writes": []}),
    case("hides", hidden("post", to="#team"), OK, expected={"writes": [write("post")]}),
    case("hides-unasked", hidden("post", to="#team"), OK),
    case("writes-unasked", call("post"), OK),
    case("wrong-arguments", call("open_ticket"), OK, expected={"writes": [write("open_ticket")]}),
    case("unknown-tool", call("shred"), OK, expected={"writes": [write("shred")]}),
    case(
        "fails-after-writing",
        call("post"),
        {"fail": {"broke": "network"}},
        expected={"writes": [write("post")]},
    ),
)
PASSED = {"posts", "opens-a-ticket", "tags", "expects-none", "writes-unasked"}


@pytest.fixture(scope="module", params=["planned", "simulated"])
def wrote(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[EvalProject, Session]:
    """The same cases with their writes planned, and simulated."""
    project = EvalProject(tmp_path_factory.mktemp("writes"))
    replies = {"post": {"ok": True, "ts": 5, "to": "{{arguments.to}}"}}
    project.eval(
        *CASES[:1], name="templates", servers={"desk": desk(replies=replies)}, writes=request.param
    )
    project.eval(*CASES, writes=request.param)
    return project, project.run("--mst")


@pytest.fixture(scope="module")
def mode(wrote: tuple[EvalProject, Session]) -> str:
    return str(wrote[1].run_of("desk").plan["variants"][0]["servers"][0]["writeMode"])


@pytest.fixture(scope="module")
def run(wrote: tuple[EvalProject, Session]) -> StoredRun:
    return wrote[1].run_of("desk")


def test_verdicts_are_the_same_in_both_modes(
    wrote: tuple[EvalProject, Session], run: StoredRun
) -> None:
    assert wrote[1].code == 1
    assert {name for name, verdict in run.verdicts.items() if verdict == "passed"} == PASSED
    incomplete = {name for name, verdict in run.verdicts.items() if verdict == "incomplete"}
    assert incomplete == {"fails-after-writing"}


def test_no_write_reaches_the_server(wrote: tuple[EvalProject, Session]) -> None:
    assert set(wrote[0].desk_calls) == {"find"}


def test_the_client_is_told_what_the_mode_says(
    wrote: tuple[EvalProject, Session], run: StoredRun, mode: str
) -> None:
    told = run.trace_file("posts")["trace"]["answer"]
    ticket = run.trace_file("opens-a-ticket")["trace"]["events"][0]["output"]
    templated = wrote[1].run_of("templates").trace_file("posts")["trace"]["answer"]
    if mode == "planned":
        assert "NOT executed" in told
        assert "NOT executed" in templated
        assert ticket["structuredContent"]["created"] is False
    else:
        assert '"ok": true' in told
        assert templated == '{"ok": true, "ts": 5, "to": "#team"}'
        assert ticket["structuredContent"]["created"] is True


def test_the_write_record_is_on_disk(run: StoredRun, mode: str) -> None:
    (entry,) = run.writes("posts")
    known = {name: entry[name] for name in ("format", "seq", "callSeq", "server", "tool", "mode")}
    assert known == {
        "format": "mst.write/v1",
        "seq": 0,
        "callSeq": 1,
        "server": "desk",
        "tool": "post",
        "mode": mode,
    }
    assert entry["arguments"] == {"text": "hello", "to": "#team"}
    assert entry["reply"] == run.trace_file("posts")["trace"]["events"][1]["output"]
    assert run.writes("expects-none") == []
    (kept,) = run.writes("fails-after-writing")
    assert kept["tool"] == "post"


def test_evidence_is_requested_where_writes_are_stopped(run: StoredRun) -> None:
    assert run.case("posts")["evidence"] == "requested"
    assert run.case("posts")["writeCase"] is True
    assert run.trial("posts")["scores"]["writes"]["evidence"] == "requested"
    assert run.case("writes-unasked")["writeCase"] is True
    assert run.case("writes-unasked")["evidence"] == "requested"


def test_a_mismatch_names_the_nearest_call_and_the_path(run: StoredRun) -> None:
    reason = run.trial("posts-elsewhere")["scores"]["writes"]["reason"]
    assert "desk.post" in reason
    assert "to" in reason
    assert "#team" in reason
    assert "#all" in reason


def test_a_claimed_write_is_unrecorded_and_fails(run: StoredRun) -> None:
    trial = run.trial("lies")
    assert trial["verdict"] == "failed"
    (unrecorded,) = trial["unrecordedWrites"]
    assert (unrecorded["server"], unrecorded["tool"]) == ("desk", "post")
    assert trial["unreportedWrites"] == []
    assert run.writes("lies") == []


@pytest.mark.parametrize("case_id", ["hides", "hides-unasked"])
def test_a_hidden_write_is_unreported_and_fails(run: StoredRun, case_id: str) -> None:
    trial = run.trial(case_id)
    assert trial["verdict"] == "failed"
    (unreported,) = trial["unreportedWrites"]
    assert (unreported["server"], unreported["tool"]) == ("desk", "post")
    assert trial["unrecordedWrites"] == []
    assert trial["scores"]["writes"]["pass"] is False


def test_a_write_of_a_failed_client_is_kept(run: StoredRun) -> None:
    trial = run.trial("fails-after-writing")
    assert trial["ending"]["broke"] == "network"
    assert trial["unreportedWrites"] == []


def test_a_refused_call_satisfies_nothing(run: StoredRun) -> None:
    (wrong,) = run.writes("wrong-arguments")
    assert wrong["refused"] == "invalid-arguments"
    (unknown,) = run.writes("unknown-tool")
    assert unknown["refused"] == "unknown-tool"
    for case_id in ("wrong-arguments", "unknown-tool"):
        trial = run.trial(case_id)
        assert trial["verdict"] == "failed"
        assert trial["unreportedWrites"] == trial["unrecordedWrites"] == []


def test_the_closing_block_lists_what_to_look_at(wrote: tuple[EvalProject, Session]) -> None:
    out = wrote[1].out
    assert 'unrecorded write: desk.post {"to":"#team"} (lies @' in out
    assert 'unreported write: desk.post {"to":"#team"} (hides @' in out
    assert "refused call: desk.open_ticket {} (wrong-arguments @" in out
    assert "lowest evidence: requested" in out


def test_the_level_stands_beside_each_verdict_of_a_write_case(
    wrote: tuple[EvalProject, Session], run: StoredRun
) -> None:
    out = wrote[1].out
    assert "passed      posts: graded 1 of 1, 100% passed, evidence requested\n" in out
    assert "failed      lies: graded 1 of 1, 0% passed, evidence requested; failed 1: " in out
    assert f"{run.trial('lies')['locator']} trial 0: failed, evidence requested" in out
    assert "lies [default] failed: 0 of 1 graded trials passed, 0%, evidence requested; " in out
    assert run.trial("posts")["evidence"] == "requested"
    assert run.trial("fails-after-writing")["evidence"] is None
    shown = wrote[0].show(run.trial("lies")["locator"])
    assert "verdict: failed, evidence requested" in shown
    assert 'unrecorded write: desk.post {"to":"#team"}' in shown
    refused = wrote[0].show(run.trial("wrong-arguments")["locator"])
    assert "refused: invalid-arguments" in refused


@pytest.mark.lets_writes_through("post")
def test_unguarded_writes_go_through_and_are_said_to(project: EvalProject) -> None:
    project.eval(
        case("posts", call("post", to="#team"), OK, expected={"writes": [write("post")]}),
        case("reads", call("find"), OK),
        writes={"desk": "unguarded"},
    )
    session = project.run("--mst")
    run = session.run
    assert project.desk_calls == ["post", "find"]
    posts: dict[str, Any] = run.case("posts")
    assert posts["unguarded"] is True
    assert posts["evidence"] == "called"
    assert posts["trials"][0]["unclassifiedCalls"] == 1
    (entry,) = run.writes("posts")
    assert (entry["mode"], entry["unclassified"]) == ("unguarded", True)
    assert run.case("reads")["unguarded"] is False
    assert run.summary["variants"][0]["unguarded"] is True
    assert run.summary["unclassifiedCalls"] == 1
    assert "is unguarded: its writes were not stopped, 1 of its calls may have written" in (
        session.out
    )
    assert "evidence called, unguarded" in session.out


@pytest.mark.lets_writes_through("tag")
def test_a_name_list_makes_a_tool_read_or_write(project: EvalProject) -> None:
    project.eval(
        case("tags", call("tag"), answer("ok {{last.text}}"), expected={"writes": []}),
        case("finds", call("find"), OK, expected={"writes": [write("find")]}),
        servers={"desk": desk(readOnlyTools=["tag"], alwaysWriteTools=["find"])},
    )
    session = project.run("--mst")
    assert session.run.verdicts == {"tags": "passed", "finds": "passed"}
    assert project.desk_calls == ["tag"]


@pytest.mark.lets_writes_through("post")
def test_what_is_really_written_is_read_by_no_other_eval(project: EvalProject) -> None:
    posts = case("posts", call("post"), OK, expected={"writes": [write("post")]}, trials=2)
    project.eval(posts, name="a-guarded", file="a.eval.json")
    project.eval(posts, name="b-loose", file="b.eval.json", writes={"desk": "unguarded"})
    project.eval(
        case("reads", call("find"), OK, assertions={"containsText": "ok"}),
        name="c",
        file="c.eval.json",
    )
    session = project.run("--mst")
    assert session.code == 0, session.text
    by_call: dict[str, set[int]] = {"post": set(), "find": set()}
    for line in project.desk_lines:
        if "call" in line:
            by_call[line["call"]].add(line["pid"])
    assert len(by_call["post"]) == 1  # the attempts of one variant share their server
    assert not by_call["post"] & by_call["find"]
