"""Ctrl-C and sudden death: what was begun is on disk, and nothing is left running."""

from __future__ import annotations

import signal

import pytest

from tests.plugin.eval_project import Bell, EvalProject, StoredRun, answer, call, case

OK = answer("ok")


@pytest.mark.parametrize("processes", ["0", "2"])
def test_ctrl_c_records_what_was_under_way(
    project: EvalProject, bell: Bell, processes: str
) -> None:
    project.eval(
        case("done", call("find"), OK),
        *(case(f"hangs-{number}", call("find"), call("stall"), OK) for number in range(2)),
        *(case(f"later-{number}", OK) for number in range(20)),
    )
    with project.started("--mst", "-n", processes, "--mst-concurrency", "4") as running:
        bell.hear(2)
        running.interrupt()
        session = running.ended(within_s=30)
    assert session.code == 2
    run = session.run
    cut = {
        "kind": "infrastructure",
        "broke": "collection",
        "reason": "the attempt was cut short because the run was stopped",
        "retryable": True,
        "scope": "trial",
    }
    for case_id in ("hangs-0", "hangs-1"):
        assert run.ending(case_id) == cut
        events = run.trace_file(case_id)["trace"]["events"]
        assert [event["name"] for event in events] == ["find"]
        assert run.case(case_id)["verdict"] == "incomplete"
    cut_short = [
        trial["ending"]
        for one in run.results["cases"]
        for trial in one["trials"]
        if trial["ending"] is not None and trial["ending"]["kind"] == "infrastructure"
    ]  # one that is done in no time may just have begun, too
    assert cut_short == [cut] * run.ledger["infrastructure"]
    assert run.ledger["unstarted"] > 0
    assert run.ledger["planned"] == 23
    assert f"unstarted {run.ledger['unstarted']}" in session.out
    assert f"run {run.plan['runId']} in" in session.out
    assert run.plan["finishedAt"] is not None
    assert not (run.folder.parents[1] / "latest.json").exists()
    assert "INTERNALERROR" not in session.text
    assert bell.all_gone()


def test_ctrl_c_in_a_body_that_runs_its_client(project: EvalProject, bell: Bell) -> None:
    project.eval(case("unused", OK), clientOptions={"script": [call("stall"), OK]})
    project.test_file(
        """
        @pytest.mark.mst(input="x", config="desk.eval.json", trials=2)
        async def test_hangs(mst):
            await mst.run()

        @pytest.mark.mst(input="x", config="desk.eval.json")
        def test_later(trial):
            assert trial.answer
        """
    )
    with project.started("--mst", "test_evals.py") as running:
        bell.hear(1)
        running.interrupt()
        session = running.ended(within_s=30)
    assert session.code == 2
    run = session.run
    ending = run.ending("test_hangs")
    assert (ending["broke"], ending["retryable"]) == ("collection", True)
    assert run.trial("test_hangs", 1)["ending"] is None
    assert bell.all_gone()


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_killed_session_keeps_what_had_ended(
    project: EvalProject, bell: Bell, processes: str
) -> None:
    project.eval(
        *(case(f"done-{number}", call("find"), OK, trials=2) for number in range(4)),
        *(case(f"hangs-{number}", call("stall"), OK) for number in range(2)),
        *(case(f"later-{number}", OK) for number in range(20)),
    )
    with project.started("--mst", "-n", processes, "--mst-concurrency", "4") as running:
        bell.hear(2)
        running.process.kill()
        session = running.ended(within_s=30)
        assert bell.all_gone()
    run: StoredRun = session.run
    assert "summary.json" not in run.files
    assert run.plan["finishedAt"] is None
    ended = [line for line in run.journal if line["kind"] == "ended"]
    assert ended
    stored = {content["locator"] for content in run.files.values() if _is_trial(content)}
    assert {line["locator"] for line in ended} <= stored
    for number in (0, 1):
        under_way = run.files.get(f"traces/default/hangs-{number}/0.json")
        assert under_way is None or under_way["ending"]["broke"] == "collection"


def _is_trial(content: object) -> bool:
    return isinstance(content, dict) and content.get("kind") == "trial"


@pytest.mark.parametrize("processes", ["0", "2"])
def test_sigterm_ends_the_session_in_order(
    project: EvalProject, bell: Bell, processes: str
) -> None:
    project.eval(
        case("done", call("find"), OK),
        case("hangs", call("find"), call("stall"), OK),
        *(case(f"later-{number}", OK) for number in range(20)),
    )
    with project.started("--mst", "-n", processes, "--mst-concurrency", "2") as running:
        bell.hear(1)
        running.process.terminate()
        session = running.ended(within_s=30)
        assert bell.all_gone()
    assert session.code == 2, session.text
    assert "INTERNALERROR" not in session.text
    run = session.run
    ending = run.ending("hangs")
    assert (ending["kind"], ending["broke"]) == ("infrastructure", "collection")
    assert "cut short" in ending["reason"]
    assert run.ledger["planned"] == 22
    assert f"run {run.plan['runId']} in" in session.out
    assert f"unstarted {run.ledger['unstarted']}" in session.out
    assert run.plan["finishedAt"] is not None


STUBBORN = """
    import asyncio
    import os
    import socket

    import pytest

    RUNG = []

    @pytest.fixture(scope="session")
    def mst_client():
        async def agent(request):
            request.trace.evidence = "structured"  # it asks no server, and says so itself
            if request.input == "fine":
                return "ok"
            call = asyncio.create_task(request.tools.call_tool("desk", "stall", {}))
            while True:
                try:
                    await asyncio.sleep(3600)
                except asyncio.CancelledError:
                    port = int(os.environ["DESK_BELL"])
                    RUNG.append(socket.create_connection(("127.0.0.1", port)))

        return agent
"""


@pytest.mark.parametrize("processes", ["0", "2"])
def test_ctrl_c_pressed_twice_stops_at_once_what_will_not_end(
    project: EvalProject, bell: Bell, processes: str
) -> None:
    project.eval(case("unused", OK), clientOptions={"script": [OK]})
    project.write("conftest.py", STUBBORN)
    project.test_file(
        """
        def mst_case(text):
            return pytest.mark.mst(input=text, config="desk.eval.json")

        @mst_case("fine")
        def test_fine(trial): assert trial.answer

        @mst_case("hangs")
        def test_hangs(trial): assert trial.answer

        @mst_case("fine")
        @pytest.mark.parametrize("n", range(20))
        def test_later(trial, n): assert trial.answer
        """
    )
    with project.started("--mst", "-n", processes, "--mst-concurrency=2", "test_evals.py") as run:
        bell.hear(1)
        run.interrupt()
        bell.hear(1)  # the client has heard of it, and does not care
        run.interrupt()
        session = run.ended(within_s=14)  # less than it would be waited for
        assert bell.all_gone()
    assert "INTERNALERROR" not in session.text
    stored = session.run  # every file of it is whole
    assert stored.plan["plannedCases"]
    if processes == "2" and session.code == -signal.SIGINT:
        return  # pytest was still at the first press, and nothing was left to close the run
    assert session.code == 2, session.text
    ending = stored.ending("test_hangs")
    assert (ending["broke"], ending["retryable"]) == ("collection", True)
    assert stored.ledger["planned"] == 22
    assert stored.ledger["infrastructure"] == 1
    assert f"run {stored.plan['runId']} in" in session.out


def test_ctrl_c_that_only_the_controller_hears(project: EvalProject, bell: Bell) -> None:
    project.eval(
        case("done", call("find"), OK),
        *(case(f"hangs-{number}", call("stall"), OK) for number in range(2)),
        *(case(f"later-{number}", OK) for number in range(20)),
    )
    with project.started("--mst", "-n", "2", "--mst-concurrency", "2") as running:
        bell.hear(2)
        running.process.send_signal(signal.SIGINT)
        session = running.ended(within_s=30)
        assert bell.all_gone()
    assert session.code == 2, session.text
    run = session.run
    for number in (0, 1):
        ending = run.ending(f"hangs-{number}")
        assert (ending["broke"], ending["retryable"]) == ("collection", True)
    assert run.ledger["unstarted"] > 0
    assert f"unstarted {run.ledger['unstarted']}" in session.out
    assert "INTERNALERROR" not in session.text
