"""Live writes: a ledger that is really written to, seeded, read and cleaned up after."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.attempt.ledgers import ADD, DONE, FOUND, MARKER, PURGE, SEED, Ledger
from tests.plugin.eval_project import EvalProject, Json, Running, Session

LIVE = ("--mst", "--allow-live-writes")
STALL = {"call": {"server": "ledger", "tool": "stall", "arguments": MARKER}}
WAIT_S = 30.0


class LedgerProject(EvalProject):
    """A folder with an eval of a ledger that is live."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.ledger = Ledger(root)
        self.environ["LEDGER_BELL"] = ""

    def ledger_eval(self, *cases: Json, words: tuple[str, ...] = (), **keys: Any) -> Path:
        """Write the eval config."""
        server = {"env": {"LEDGER_BELL": "${LEDGER_BELL}"}}
        config = self.ledger.config(*words, server=server, client="scripted", **keys)
        return self.write("team.eval.json", json.dumps({**config, "cases": list(cases)}, indent=1))


def pays(case_id: str, *steps: Json, **more: Any) -> Json:
    """Return a case that has an amount paid, and its outcome checked."""
    return {
        "id": case_id,
        "input": "pay {{trial.id}}",
        "clientOptions": {"script": list(steps or (ADD, DONE))},
        "expected": {"outcome": [{**FOUND, "withinMs": 200}]},
        **more,
    }


def loses(reason: str) -> Json:
    return {"fail": {"broke": "network", "reason": reason}}


@pytest.fixture
def project(tmp_path: Path) -> LedgerProject:
    return LedgerProject(tmp_path)


@pytest.fixture
def bell(project: LedgerProject) -> Iterator[socket.socket]:
    """Hears the calls of `stall`."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(WAIT_S)
        project.environ["LEDGER_BELL"] = str(listening.getsockname()[1])
        yield listening


def wait_for_calls(bell: socket.socket, times: int) -> list[socket.socket]:
    return [bell.accept()[0] for _ in range(times)]


def test_without_leave_nothing_is_started_and_the_tools_are_named(project: LedgerProject) -> None:
    project.ledger_eval(pays("a"))
    for args in (("--mst",), ("--mst", "-n2"), ("--mst", "--collect-only")):
        session = project.run(*args)
        assert session.code == 4
        assert "team.eval.json:" in session.text
        assert "the writes to server 'ledger' are live" in session.text
        assert "(tools that write: ledger: add, purge, refuse, reject, die)" in session.text
        assert "add --allow-live-writes where that is meant" in session.text
        assert session.folders == ()
    assert project.ledger.calls == []


@pytest.mark.lets_writes_through
def test_leave_may_be_given_in_the_ini_file(project: LedgerProject) -> None:
    project.ledger_eval(pays("a"))
    project.write("pytest.ini", "[pytest]\nmst_allow_live_writes = true\n")
    assert project.run("--mst").code == 0


def test_what_is_not_fit_for_live_writes_is_refused_with_its_place(project: LedgerProject) -> None:
    project.ledger_eval(pays("a", input="pay"), pays("b", expected={"writes": []}), cleanup=[])
    session = project.run(*LIVE)
    assert session.code == 4
    assert session.count("team.eval.json:") == 2
    assert "'a' has not all that live writes need; missing: a cleanup step" in session.text
    assert "'b' has not all that live writes need; missing: an outcome check" in session.text


@pytest.mark.parametrize("workers", [(), ("-n2",)])
@pytest.mark.lets_writes_through
def test_what_was_applied_is_proved_and_so_is_what_was_not(
    project: LedgerProject, workers: tuple[str, ...]
) -> None:
    only_says = pays("says-so", DONE)
    stopped = {**pays("stopped"), "expected": {}, "assertions": {"containsText": "done"}}
    project.ledger_eval(
        pays("pays", expected={"writes": [{"tool": "add"}], "outcome": [FOUND]}),
        only_says,
        stopped,
        trials=2,
    )
    session = project.run(*LIVE, *workers)
    assert session.code == 1
    run = session.run
    assert run.verdicts == {"pays": "passed", "says-so": "failed", "stopped": "passed"}
    assert run.case("pays")["evidence"] == "applied"
    assert run.trial("says-so")["scores"]["outcome"]["evidence"] == "applied"
    assert [one["mode"] for one in run.writes("pays")] == ["live"]
    assert [one["mode"] for one in run.writes("stopped")] == ["planned"]
    assert [one["id"] for one in run.plan["plannedCases"] if "writesStopped" in one] == ["stopped"]
    (variant,) = run.plan["variants"]
    assert variant["servers"][0]["writeMode"] == "live"
    trace = run.trace_file("pays", 1)
    (reading,) = trace["outcome"]
    assert reading["arguments"] == {"marker": trace["trialId"]}
    assert project.ledger.entries == []
    assert len(project.ledger.markers) == 6  # each attempt was seeded as itself


@pytest.mark.lets_writes_through
def test_a_run_is_graded_again_by_what_was_read_then(project: LedgerProject) -> None:
    project.ledger_eval(pays("a"))
    run_id = project.run(*LIVE).run.plan["runId"]
    calls = project.ledger.calls
    wants_more = [{**FOUND, "containsText": ["paid", "twice"]}]
    project.ledger_eval(pays("a", expected={"outcome": wants_more}))
    session = project.run("--mst", "--mst-grade", run_id)  # which writes nothing
    assert session.code == 1
    assert '"twice" is not in' in session.text
    assert project.ledger.calls == calls


@pytest.mark.lets_writes_through
def test_what_is_read_otherwise_is_collected_anew(project: LedgerProject) -> None:
    project.ledger_eval(pays("a"))
    run_id = project.run(*LIVE).run.plan["runId"]
    other = {**FOUND, "arguments": {**MARKER, "page": 1}}
    project.ledger_eval(pays("a", expected={"outcome": [other]}))
    session = project.run(*LIVE, f"--mst-resume={run_id}")
    assert (session.code, session.taken_up) == (0, [(0, 1, 0, 0)])
    assert len(project.ledger.markers) == 2


@pytest.mark.lets_writes_through
def test_a_set_up_that_fails_leaves_its_case_incomplete(project: LedgerProject) -> None:
    refused = {"server": "ledger", "tool": "refuse", "arguments": MARKER}
    project.ledger_eval(pays("a"), setup=[SEED, refused])
    session = project.run(*LIVE)
    assert session.code == 10
    ending = session.run.ending("a")
    assert (ending["broke"], ending["retryable"]) == ("setup", False)
    assert ending["reason"].startswith("setup step 2 of 2, ledger.refuse")
    assert project.ledger.calls == ["add", "refuse", "purge"]
    assert project.ledger.entries == []


@pytest.mark.lets_writes_through
def test_a_cleanup_that_fails_is_told_and_made_up_for_later(project: LedgerProject) -> None:
    refused = {"server": "ledger", "tool": "refuse", "arguments": MARKER}
    project.ledger_eval(pays("a"), cleanup=[refused])
    session = project.run(*LIVE)
    assert session.code == 0
    run = session.run
    trial_id = run.trace_file("a")["trialId"]
    assert f"not cleaned up: a [default] trial 0, which wrote as {trial_id}: ledger.refuse" in (
        session.out
    )
    assert session.finish_with[-1] == "--allow-live-writes"
    (owed,) = run.summary["owedCleanups"]
    assert owed["trialId"] == trial_id
    assert project.ledger.entries == ["seed", "paid"]
    again = project.run(*session.finish_with)  # as before: it is tried, and told, and still owed
    assert "cleaning up after 1 attempt, which is still owed" in again.out
    assert f"is not cleaned up after ({trial_id}): ledger.refuse" in again.out
    project.ledger_eval(pays("a"), cleanup=[PURGE])
    mended = project.run(*session.finish_with)
    assert mended.code == 0
    assert "not cleaned up" not in mended.out
    assert project.ledger.entries == []


@pytest.mark.parametrize("workers", [(), ("-n2",)])
@pytest.mark.lets_writes_through
def test_ctrl_c_cleans_up_after_what_it_cuts_short(
    project: LedgerProject, bell: socket.socket, workers: tuple[str, ...]
) -> None:
    project.ledger_eval(pays("a", ADD, STALL), pays("b", ADD, STALL))
    with project.started(*LIVE, *workers) as running:
        heard = wait_for_calls(bell, 2)
        running.interrupt()
        session = running.ended()
    for one in heard:
        one.close()
    assert session.code == 2
    assert session.run.ending("a")["broke"] == "collection"
    assert project.ledger.entries == []
    assert "owedCleanups" not in session.run.summary


def wait_for_ends(project: LedgerProject, count: int) -> None:
    """Wait until the journal has that many attempts that have ended."""
    give_up_at = time.monotonic() + WAIT_S
    journals = ".mst-results/*/runs/*/journal.jsonl"
    while sum(one.read_text().count('"ended"') for one in project.root.glob(journals)) < count:
        assert time.monotonic() < give_up_at
        time.sleep(0.005)


def killed(
    project: LedgerProject, bell: socket.socket, *args: str, calls: int, ended: int = 0
) -> Session:
    """Kill a session, and all that it started, in the middle of its attempts."""
    with project.started(*LIVE, *args) as running:
        heard = wait_for_calls(bell, calls)
        wait_for_ends(project, ended)
        running.kill()
        session = ended_by_kill(running)
    for one in heard:
        one.close()
    return session


def ended_by_kill(running: Running) -> Session:
    session = running.ended()
    assert session.code == -9
    return session


@pytest.mark.parametrize("workers", [(), ("-n2",)])
@pytest.mark.lets_writes_through
def test_a_killed_run_cleans_up_before_anything_else_when_it_is_taken_up(
    project: LedgerProject, bell: socket.socket, workers: tuple[str, ...]
) -> None:
    project.ledger_eval(pays("done"), pays("a", ADD, STALL), pays("b", ADD, STALL))
    killed(project, bell, *workers, "--mst-concurrency", "6", calls=2, ended=1)
    left = project.ledger.markers
    assert project.ledger.entries.count("paid") == 2
    project.ledger_eval(pays("done"), pays("a", ADD, DONE), pays("b", ADD, DONE))

    refused = project.run("--mst", "--mst-resume", *workers)
    assert refused.code == 4
    assert "add --allow-live-writes" in refused.text
    before = len(project.ledger.calls)

    session = project.run(*LIVE, "--mst-resume", *workers)
    assert session.code == 0
    assert "cleaning up after 2 attempts, which is still owed" in session.out
    assert session.count("cleaning up after") == 1
    assert project.ledger.calls[before:][:2] == ["purge", "purge"]  # before any attempt
    assert project.ledger.entries == []
    assert len(project.ledger.markers - left) == 2  # what is collected anew writes as another


@pytest.mark.lets_writes_through
def test_a_run_that_owes_cleanups_only_is_taken_up_to_pay_them(
    project: LedgerProject, bell: socket.socket
) -> None:
    project.ledger_eval(pays("a", ADD, STALL))
    killed(project, bell, calls=1)
    assert project.ledger.entries == ["seed", "paid"]
    project.ledger_eval(pays("a", ADD, STALL, skip="not today"))
    session = project.run(*LIVE, "--mst-resume")
    assert "cleaning up after 1 attempt, which is still owed" in session.out
    assert project.ledger.entries == []


@pytest.mark.lets_writes_through
def test_what_a_lost_worker_wrote_is_cleaned_up_at_the_end(project: LedgerProject) -> None:
    kills = {"call": {"server": "ledger", "tool": "end_client", "arguments": MARKER}}
    project.ledger_eval(pays("a", ADD, kills), pays("b"))
    session = project.run(*LIVE, "-n2", "--max-worker-restart", "2")
    assert session.code == 10
    assert session.run.ending("a")["broke"] == "collection"
    assert "cleaning up after 1 attempt, which is still owed" in session.out
    assert project.ledger.entries == []
    assert "owedCleanups" not in session.run.summary


def test_a_test_function_that_writes_is_refused(project: LedgerProject) -> None:
    project.ledger_eval(pays("a"))
    project.test_file(
        """
        @pytest.mark.mst(config="team.eval.json", input="pay {{trial.id}}")
        @pytest.mark.writes(server="ledger", tool="add")
        def test_pays(trial):
            pass
        """
    )
    session = project.run(*LIVE)
    assert session.code == 4
    assert "@pytest.mark.writes is on a test whose server 'ledger' is live" in session.text
    assert project.ledger.calls == []


@pytest.mark.lets_writes_through
def test_a_fixture_that_makes_a_server_live_is_for_functions_that_do_not_write(
    project: LedgerProject,
) -> None:
    """Both are put to the same: it does not count which of them comes first."""
    project.write("live.json", json.dumps(project.ledger.config(client="scripted")))
    project.test_file(
        """
        import json, pathlib
        from pytest_mst import ScriptedClient

        @pytest.fixture(scope="module")
        def mst_config():
            return json.loads(pathlib.Path("live.json").read_text())

        @pytest.fixture(scope="module")
        def mst_client():
            call = {"server": "ledger", "tool": "add", "arguments": {"marker": "x"}}
            return ScriptedClient([{"call": call}, {"answer": "done"}])

        @pytest.mark.mst(input="pay {{trial.id}}")
        def test_has_them_stopped(trial):
            assert trial.writes.one("add").mode == "planned"

        @pytest.mark.mst(input="pay {{trial.id}}")
        @pytest.mark.writes(server="ledger", tool="add")
        def test_writes(trial):
            pass
        """
    )
    session = project.run(*LIVE)
    assert session.code == 10
    assert session.run.verdicts == {"test_has_them_stopped": "passed", "test_writes": "incomplete"}
    assert "has no outcome checks" in session.run.ending("test_writes")["reason"]
    assert project.ledger.calls == ["add", "purge"]  # of the one that is made


@pytest.mark.lets_writes_through
def test_a_test_function_that_does_not_say_so_has_its_writes_stopped(
    project: LedgerProject,
) -> None:
    project.ledger_eval(pays("a"))
    project.test_file(
        """
        from pytest_mst import ScriptedClient

        @pytest.fixture(scope="module")
        def mst_client():
            call = {"server": "ledger", "tool": "add", "arguments": {"marker": "x"}}
            return ScriptedClient([{"call": call}, {"answer": "done"}])

        @pytest.mark.mst(config="team.eval.json", input="pay {{trial.id}}")
        def test_pays(trial):
            assert trial.writes.one("add").mode == "planned"
        """
    )
    session = project.run(*LIVE, "test_evals.py")
    assert session.code == 0, session.text
    assert project.ledger.calls == ["add", "purge"]  # what it reads is seeded all the same


@pytest.mark.lets_writes_through
def test_a_cleanup_that_fails_again_is_tried_once_a_session_and_told_by_its_own_reason(
    project: LedgerProject,
) -> None:
    refused = {"server": "ledger", "tool": "refuse", "arguments": MARKER}
    project.ledger_eval(pays("a"), setup=[refused], cleanup=[refused])
    session = project.run(*LIVE)
    first = session.run.trace_file("a")["trialId"]
    calls = len(project.ledger.calls)
    again = project.run(*session.finish_with)
    # the earlier go's cleanup, then the set-up and the cleanup of the one that is made anew
    assert project.ledger.calls[calls:] == ["refuse"] * 3
    assert again.count("cleaning up after 1 attempt") == 1
    assert f"which wrote as {first}: ledger.refuse" in again.out
    assert "its process ended" not in again.out


@pytest.mark.lets_writes_through
def test_what_is_read_and_owed_is_shown_and_that_it_was_made_up_for(project: LedgerProject) -> None:
    project.write("closed", "")
    project.ledger_eval(pays("a"), cleanup=[PURGE], words=("closed=closed",))
    session = project.run(*LIVE)
    trial = session.run.trial("a")
    owed = f"not cleaned up, what was written as {session.run.trace_file('a')['trialId']}"
    shown = project.show(trial["locator"])
    assert f"{owed}: ledger.purge" in shown
    assert "read after it ended" in shown
    (project.root / "closed").unlink()
    again = project.run(*session.finish_with)
    assert (again.code, again.taken_up) == (0, [(1, 0, 0, 0)])
    assert "cleaned up later; when it ended it failed: ledger.purge" in (
        project.show(trial["locator"])
    )
    assert project.ledger.entries == []
