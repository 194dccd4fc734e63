"""Beside pytest-timeout and pytest-rerunfailures: a case stays what it is."""

from __future__ import annotations

import pytest

from tests.plugin.eval_project import EvalProject, answer, call, case

OK = answer("ok")
TIMEOUT = ("mst", "xdist", "timeout")
RERUNS = ("mst", "xdist", "rerunfailures")


def test_reruns_do_not_repeat_cases(project: EvalProject) -> None:
    project.eval(
        case("good", OK),
        case("bad", answer("no"), trials=2),
        case("broken", {"fail": {"broke": "network"}}),
        clientOptions={"script": [call("find"), OK]},
    )
    project.test_file(
        """
        runs = 0

        @pytest.mark.mst(input="x", config="desk.eval.json")
        def test_case(trial): assert trial.answer == "no"

        def test_ordinary():
            global runs
            runs += 1
            assert runs == 2
        """
    )
    session = project.run("--mst", "--reruns", "2", plugins=RERUNS)
    assert session.code == 1
    run = session.run_of("desk")
    assert run.verdicts == {"good": "passed", "bad": "failed", "broken": "incomplete"}
    assert run.ledger["planned"] == 4
    assert project.desk_calls == ["find"]
    assert "2 failed, 2 passed, 1 incomplete, 1 rerun" in session.out


def test_a_lost_worker_is_not_run_again_by_reruns(project: EvalProject) -> None:
    project.eval(case("unused", OK), servers={}, clientOptions={"script": [OK]})
    project.test_file(
        """
        @pytest.mark.mst(input="x", config="desk.eval.json")
        @pytest.mark.parametrize("n", range(4))
        def test_it(trial, n):
            if n == 1:
                os._exit(9)
            assert trial.answer
        """
    )
    session = project.run("--mst", "-n", "2", "--reruns", "1", "test_evals.py", plugins=RERUNS)
    run = session.run
    assert run.ledger["planned"] == 4
    assert run.verdicts["test_it[1]"] == "incomplete"
    assert session.code == 10, session.text


def test_each_attempt_gets_the_whole_time(project: EvalProject) -> None:
    slow = [{"sleep": 0.6}, OK]
    project.eval(
        case("slow", *slow, trials=4), servers={}, clientOptions={"script": slow}, concurrency=1
    )
    project.test_file(
        """
        @pytest.mark.mst(input="x", config="desk.eval.json", trials=4)
        def test_slow(trial): assert trial.answer == "ok"
        """
    )
    session = project.run("--mst", "--timeout", "2", plugins=TIMEOUT)
    assert session.code == 0, session.text


@pytest.fixture(scope="module")
def timed_out(tmp_path_factory: pytest.TempPathFactory) -> EvalProject:
    project = EvalProject(tmp_path_factory.mktemp("timeout"))
    project.eval(
        case("hangs", {"sleep": 2.5}, OK, trials=2),
        case("fine", OK),
        servers={},
        clientOptions={"script": [OK]},
    )
    project.test_file(
        """
        import time

        CASE = pytest.mark.mst(input="x", config="desk.eval.json")

        @CASE
        def test_body_hangs(trial):
            assert trial.answer
            time.sleep(60)

        @CASE
        async def test_client_hangs(mst):
            import anyio
            await anyio.sleep(60)

        @CASE
        def test_own_client_hangs(dry_run_proxy):
            time.sleep(60)

        @pytest.fixture
        def slow(): time.sleep(60)

        @CASE
        def test_fixture_hangs(slow, trial): pass

        @CASE
        def test_fine(trial): assert trial.answer
        """
    )
    return project


def test_running_out_of_pytests_time_never_fails_a_trial(timed_out: EvalProject) -> None:
    session = timed_out.run("--mst", "--timeout", "1.5", "--timeout-method=signal", plugins=TIMEOUT)
    assert session.code == 10, session.text
    assert session.run_of("desk").verdicts == {"hangs": "incomplete", "fine": "passed"}
    run = session.run_of("test_evals")
    assert run.verdicts == {
        "test_body_hangs": "incomplete",
        "test_client_hangs": "incomplete",
        "test_own_client_hangs": "incomplete",
        "test_fixture_hangs": "incomplete",
        "test_fine": "passed",
    }
    for name in ("test_client_hangs", "test_own_client_hangs"):
        assert run.ending(name)["broke"] == "deadline"
        assert run.ending(name)["retryable"] is True
    for name in ("test_body_hangs", "test_fixture_hangs"):
        assert run.ending(name) == {"kind": "trial"}
        assert run.trial(name)["verdict"] == "ungraded"
