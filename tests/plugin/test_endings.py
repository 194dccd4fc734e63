"""How attempts end, told apart exactly: in `results.json` and in each attempt's own file."""

from __future__ import annotations

from typing import Any

import pytest

from tests.plugin.eval_project import EvalProject, Session, StoredRun, answer, call, case, desk

OK = answer("ok")
BROKE = ("client-app", "workspace", "network", "provider", "collection", "deadline", "setup")
LIMITS = ("turns", "time", "calls", "context")


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[EvalProject, Session]:
    """One session with a case for each ending."""
    project = EvalProject(tmp_path_factory.mktemp("endings"))
    project.eval(
        case("ends-well", OK),
        case("errors", OK, {"error": "I gave up"}),
        *(case(f"stops-{limit}", OK, {"stop": limit}) for limit in LIMITS),
        *(case(f"fails-{broke}", {"fail": {"broke": broke, "reason": "so"}}) for broke in BROKE),
        case("says-all", {"fail": {"broke": "setup", "retryable": True, "accepted": False}}),
        case("raises", {"raise": "nobody expected this"}),
        case("too-many-calls", call("find"), call("find"), OK, options={"maxToolCalls": 1}),
        case("too-many-turns", call("find"), call("find"), OK, options={"maxTurns": 1}),
        case("too-long", OK, {"sleep": 60}, options={"maxDurationMs": 200}),
        case("crashes-the-desk", call("find"), call("crash"), OK),
        case("goes-on-after", call("crash"), call("find", again=1), answer("ok {{last.text}}")),
        case("tool-fails", call("fail"), answer("ok {{last.text}}")),
        case("tool-rejects", call("reject"), answer("ok {{last.text}}")),
        case("no-such-server", call("find", server="attic"), answer("ok {{last.text}}")),
        servers={"desk": desk(isolation="attempt")},
    )
    return project, project.run("--mst", "--mst-concurrency", "4")


@pytest.fixture(scope="module")
def run(ended: tuple[EvalProject, Session]) -> StoredRun:
    return ended[1].run


def test_the_session_counts_them_all(ended: tuple[EvalProject, Session], run: StoredRun) -> None:
    assert ended[1].code == 1
    infrastructure = len(BROKE) + 2
    assert run.ledger["infrastructure"] == infrastructure
    assert run.ledger["graded"] == run.ledger["planned"] - infrastructure
    assert {line["kind"] for line in run.journal} == {"begun", "ended"}


def test_a_trial_has_nothing_more_to_say(run: StoredRun) -> None:
    assert run.ending("ends-well") == {"kind": "trial"}
    assert run.trial("ends-well")["verdict"] == "passed"


def test_a_client_that_errors_is_a_trial_that_cannot_pass(run: StoredRun) -> None:
    assert run.ending("errors") == {"kind": "trial", "clientError": "I gave up"}
    assert run.trial("errors")["verdict"] == "failed"
    assert run.trial("errors")["scores"]["containsText"]["pass"] is True


@pytest.mark.parametrize("limit", LIMITS)
def test_a_client_that_ran_out_is_graded_as_usual(run: StoredRun, limit: str) -> None:
    assert run.ending(f"stops-{limit}") == {"kind": "trial", "stoppedBy": limit}
    assert run.trial(f"stops-{limit}")["verdict"] == "passed"


@pytest.mark.parametrize("broke", BROKE)
def test_what_broke_is_kept(run: StoredRun, broke: str) -> None:
    assert run.ending(f"fails-{broke}") == {
        "kind": "infrastructure",
        "broke": broke,
        "reason": "so",
        "retryable": broke != "setup",
        "scope": "trial",
    }
    assert run.trial(f"fails-{broke}")["verdict"] is None
    assert run.trial(f"fails-{broke}")["scores"] == {}
    assert run.case(f"fails-{broke}")["verdict"] == "incomplete"


def test_the_producer_says_whether_a_retry_helps(run: StoredRun) -> None:
    assert run.ending("says-all") == {
        "kind": "infrastructure",
        "broke": "setup",
        "reason": "as its script says",
        "retryable": True,
        "scope": "trial",
        "accepted": False,
    }


def test_what_nobody_caught_is_a_client_app_failure(run: StoredRun) -> None:
    ending = run.ending("raises")
    assert (ending["kind"], ending["broke"]) == ("infrastructure", "client-app")
    assert "nobody expected this" in ending["reason"]
    assert "Traceback" in ending["detail"]


@pytest.mark.parametrize(
    ("case_id", "limit"),
    [("too-many-calls", "calls"), ("too-many-turns", "turns"), ("too-long", "time")],
)
def test_the_clients_own_limits_end_in_a_trial(run: StoredRun, case_id: str, limit: str) -> None:
    assert run.ending(case_id) == {"kind": "trial", "stoppedBy": limit}
    events = run.trace_file(case_id)["trace"]["events"]
    assert [event["name"] for event in events] == ([] if limit == "time" else ["find"])


def test_a_server_that_dies_in_a_call_is_part_of_the_trial(run: StoredRun) -> None:
    assert run.ending("crashes-the-desk") == {"kind": "trial"}
    event = run.trace_file("crashes-the-desk")["trace"]["events"][1]
    assert (event["name"], event["isError"]) == ("crash", True)
    assert "exit" in event["output"]["error"]["message"]
    assert run.ending("goes-on-after") == {"kind": "trial"}
    assert run.trace_file("goes-on-after")["trace"]["answer"] == 'ok find {"again": 1}'


def test_a_tool_that_fails_or_rejects_is_part_of_the_trial(run: StoredRun) -> None:
    answers = {
        name: run.trace_file(name)["trace"]["answer"]
        for name in ("tool-fails", "tool-rejects", "no-such-server")
    }
    assert answers["tool-fails"] == "ok the desk is closed"
    assert answers["tool-rejects"] == "ok not at this desk"
    assert "attic" in answers["no-such-server"]
    for name in answers:
        assert run.ending(name) == {"kind": "trial"}
        assert run.trace_file(name)["trace"]["events"][0]["isError"] is True


def test_infrastructure_error_is_still_written(run: StoredRun) -> None:
    assert run.trace_file("fails-network")["infrastructureError"] is True
    assert run.trace_file("ends-well")["infrastructureError"] is False


def test_our_deadline_is_an_infrastructure_failure_and_keeps_the_trace(
    project: EvalProject,
) -> None:
    project.eval(case("hangs", call("find"), call("stall"), OK), timeout=1500, trials=2)
    session = project.run("--mst")
    assert session.code == 10
    for number in (0, 1):
        ending = session.run.ending("hangs", number)
        assert (ending["broke"], ending["retryable"]) == ("deadline", True)
        events = session.run.trace_file("hangs", number)["trace"]["events"]
        assert events[0]["name"] == "find"


UNUSABLE: dict[str, dict[str, Any]] = {
    "silent": desk("silent", connectTimeoutMs=500),
    "exit": desk("exit"),
    "junk": desk("junk"),
    "no-command": {"transport": "stdio", "command": "no-such-command-at-all"},
    "no-http": {
        "transport": "http",
        "serverUrl": "http://127.0.0.1:1/mcp",
        "connectTimeoutMs": 1000,
    },
    "not-a-server": {"transport": "python", "object": "json:dumps"},
    "no-module": {"transport": "python", "object": "no_such_module_at_all:server"},
}


def test_a_server_that_cannot_be_used_is_a_setup_failure_of_its_variant(
    project: EvalProject,
) -> None:
    project.eval(
        case("one", OK),
        case("two", OK),
        servers={"desk": desk(), **UNUSABLE},
        variants=[
            {"name": "fine", "servers": ["desk"]},
            *({"name": label, "servers": ["desk", label]} for label in UNUSABLE),
        ],
    )
    session = project.run("--mst")
    assert session.code == 10
    run = session.run
    for label in UNUSABLE:
        for case_id in ("one", "two"):
            ending = run.ending(case_id, variant=label)
            assert (ending["broke"], ending["scope"]) == ("setup", "variant"), label
            assert ending["retryable"] is True, label
            assert f"'{label}'" in ending["reason"]
            assert run.case(case_id, label)["verdict"] == "incomplete"
    for case_id in ("one", "two"):
        assert run.ending(case_id, variant="fine") == {"kind": "trial"}
    assert "no desk today" in run.ending("one", variant="exit")["detail"]
    assert run.ledger == {
        "planned": 2 + 2 * len(UNUSABLE),
        "graded": 2,
        "ungraded": 0,
        "infrastructure": 2 * len(UNUSABLE),
        "unstarted": 0,
    }
    assert "Traceback" not in session.text
