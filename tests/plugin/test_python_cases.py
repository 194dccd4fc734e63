"""Eval cases written in Python: what their bodies and fixtures say of a trial."""

from __future__ import annotations

import pytest

from tests.plugin.eval_project import EvalProject, Session, StoredRun, answer, call, case

OK = answer("ok")
BODIES = """
import warnings
from pytest_mst import InfrastructureError

def mst_case(**more):
    return pytest.mark.mst(input="Post it", config="desk.eval.json", **more)

@mst_case(trials=2)
def test_passes(trial):
    assert trial.answer == "ok"
    assert [event.name for event in trial.calls()] == ["find", "post"]
    assert trial.call("find").server == "desk"
    assert trial.writes.one("post").arguments == {"to": "#team"}
    assert trial.agreement.unreported == ()

@mst_case()
async def test_async_body(trial):
    assert trial.answer == "ok"

@mst_case()
class TestInAClass:
    seen = None
    def test_method(self, trial):
        assert self.seen is None and trial.answer
        self.seen = trial

    @mst_case(trials=3)
    def test_a_fresh_instance_for_each_attempt(self, trial):
        assert self.seen is None and trial.answer
        self.seen = trial

@mst_case(trials=2, pass_threshold=0.5)
def test_tolerates(trial):
    assert trial.answer and trial.number == 0

@mst_case()
def test_asserts(trial):
    expected = "something else"
    assert trial.answer == expected, "not what was asked for"

@mst_case()
def test_calls_fail(trial):
    pytest.fail(f"I do not like {trial.answer}")

@mst_case()
def test_looks_up_a_write_that_is_not_there(trial):
    trial.writes.one("open_ticket")

@mst_case()
def test_looks_up_a_call_that_is_not_there(trial):
    trial.call("stall")

@mst_case()
def test_fails_in_a_group(trial):
    raise ExceptionGroup("both", [AssertionError(trial.answer), AssertionError("two")])

@mst_case()
def test_body_breaks(trial):
    {}[trial.answer]

@mst_case()
def test_body_breaks_in_a_group(trial):
    raise ExceptionGroup("both", [AssertionError(trial.answer), KeyError("two")])

@mst_case()
def test_skips_after_all(trial):
    pytest.skip(trial.answer)

@mst_case()
def test_never_looks(trial):
    pass

@mst_case()
def test_raises_infrastructure(trial):
    raise InfrastructureError("network", "my checker is down", retryable=True)

@pytest.fixture
def broken_after(trial):
    raise KeyError("of a fixture")

@mst_case()
def test_fixture_breaks_after_the_trial(broken_after):
    assert 0

@pytest.fixture
def broken_before():
    raise OSError("no such place")

@mst_case()
def test_fixture_breaks_before_the_trial(broken_before, trial):
    assert 0

@pytest.fixture
def no_network():
    raise InfrastructureError("network", "the tunnel is down", retryable=True)

@mst_case(trials=2)
def test_fixture_says_infrastructure(no_network, trial):
    assert 0

@pytest.fixture
def broken_teardown():
    yield
    raise OSError("cannot clean up")

@mst_case()
def test_teardown_breaks(broken_teardown, trial):
    assert trial.answer

async def helper(): pass

@mst_case()
def test_forgets_a_coroutine(trial):
    assert trial.answer
    helper()

@mst_case()
def test_returns_a_coroutine(trial):
    assert trial.answer
    return helper()

@mst_case()
@pytest.mark.parametrize("word", ["ok", "no"])
def test_with_parameters(trial, word):
    assert trial.answer == word

@mst_case()
@pytest.mark.writes(server="desk", tool="post")
def test_graded_by_marks_alone(): pass
"""
VERDICTS = {
    "test_passes": "passed",
    "test_async_body": "passed",
    "TestInAClass::test_method": "passed",
    "TestInAClass::test_a_fresh_instance_for_each_attempt": "passed",
    "test_tolerates": "passed",
    "test_asserts": "failed",
    "test_calls_fail": "failed",
    "test_looks_up_a_write_that_is_not_there": "failed",
    "test_looks_up_a_call_that_is_not_there": "failed",
    "test_fails_in_a_group": "failed",
    "test_body_breaks": "incomplete",
    "test_body_breaks_in_a_group": "incomplete",
    "test_skips_after_all": "incomplete",
    "test_never_looks": "incomplete",
    "test_raises_infrastructure": "incomplete",
    "test_fixture_breaks_after_the_trial": "incomplete",
    "test_fixture_breaks_before_the_trial": "incomplete",
    "test_fixture_says_infrastructure": "incomplete",
    "test_teardown_breaks": "passed",
    "test_forgets_a_coroutine": "incomplete",
    "test_returns_a_coroutine": "incomplete",
    "test_with_parameters[ok]": "passed",
    "test_with_parameters[no]": "failed",
    "test_graded_by_marks_alone": "passed",
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    project = EvalProject(tmp_path_factory.mktemp("python"))
    steps = [call("find"), call("post", to="#team"), OK]
    project.eval(case("unused", OK), clientOptions={"script": steps})
    project.test_file(BODIES)
    return project.run("--mst", "test_evals.py")


@pytest.fixture(scope="module")
def run(session: Session) -> StoredRun:
    return session.run


def test_each_body_comes_to_its_verdict(session: Session, run: StoredRun) -> None:
    assert run.verdicts == VERDICTS
    assert session.code == 1


@pytest.mark.parametrize("name", [name for name, word in VERDICTS.items() if word == "failed"])
def test_a_failed_assertion_fails_the_trial(run: StoredRun, name: str) -> None:
    assert run.trial(name)["ending"] == {"kind": "trial"}
    assert run.trial(name)["scores"]["body"]["pass"] is False


def test_the_assertion_is_shown_as_pytest_shows_it(session: Session, run: StoredRun) -> None:
    for line in (
        '>       assert trial.answer == expected, "not what was asked for"',
        "E       AssertionError: not what was asked for",
        "E       assert 'ok' == 'something else'",
    ):
        assert line in session.out
    reason = run.trial("test_asserts")["scores"]["body"]["reason"]
    assert reason.startswith("not what was asked for\nassert 'ok' == 'something else'")
    failures = session.out.partition("= FAILURES =")[2]
    assert f"{run.trial('test_asserts')['locator']} trial 0: failed" in failures
    assert "0 writes match open_ticket, not 1" in failures


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("test_body_breaks", "the test body raised KeyError: 'ok'"),
        ("test_body_breaks_in_a_group", "the test body raised ExceptionGroup: both"),
        ("test_skips_after_all", "the test body raised Skipped: ok"),
        ("test_never_looks", "the test body never looked at its trial"),
        ("test_raises_infrastructure", "the test body raised InfrastructureError"),
        ("test_fixture_breaks_after_the_trial", "a fixture raised KeyError: 'of a fixture'"),
        ("test_forgets_a_coroutine", "'helper' was never awaited"),
        ("test_returns_a_coroutine", "never awaited: write `async def`"),
    ],
)
def test_what_cannot_grade_leaves_a_trial_ungraded(run: StoredRun, name: str, said: str) -> None:
    trial = run.trial(name)
    assert trial["ending"] == {"kind": "trial"}
    assert trial["verdict"] == "ungraded"
    assert said in trial["graderFailures"]["body"]
    assert said in run.trace_file(name.replace("::", "_"))["gradingError"]


def test_a_fixture_that_breaks_before_the_trial_does_not_lose_it(run: StoredRun) -> None:
    trial = run.trial("test_fixture_breaks_before_the_trial")
    assert trial["verdict"] == "ungraded"
    assert "a fixture raised OSError" in trial["graderFailures"]["body"]


def test_a_fixture_cannot_change_the_ending_of_a_trial(run: StoredRun) -> None:
    for trial in run.case("test_fixture_says_infrastructure")["trials"]:
        assert trial["ending"] == {"kind": "trial"}
        assert "the tunnel is down" in trial["graderFailures"]["body"]


def test_a_teardown_error_is_an_ordinary_error(session: Session) -> None:
    assert "ERROR at teardown of test_teardown_breaks" in session.out
    assert "OSError: cannot clean up" in session.out
    assert "1 error" in session.out.splitlines()[-1]


def test_evidence_is_what_the_body_looked_at(run: StoredRun) -> None:
    assert run.trial("test_passes")["scores"]["body"]["evidence"] == "requested"
    assert run.trial("test_asserts")["scores"]["body"]["evidence"] == "claimed"
    assert run.trial("test_looks_up_a_call_that_is_not_there")["scores"]["body"]["evidence"] == (
        "called"
    )
    assert run.case("test_graded_by_marks_alone")["evidence"] == "requested"


def test_a_fixture_error_without_ungraded_trial_is_not_hidden_by_an_exit_code(
    project: EvalProject,
) -> None:
    project.eval(case("unused", OK), clientOptions={"script": [OK]}, servers={})
    project.test_file(
        """
        @pytest.fixture
        def broken_teardown():
            yield
            raise OSError("cannot clean up")

        @pytest.mark.mst(input="x", config="desk.eval.json")
        def test_case(broken_teardown, trial): assert trial.answer
        """
    )
    session = project.run("--mst", "test_evals.py")
    assert session.code == 1
    assert session.run.verdicts == {"test_case": "passed"}


def test_a_file_that_does_not_import_is_2_as_in_pytest(project: EvalProject) -> None:
    project.eval(case("fine", OK), servers={})
    project.test_file("import no_such_module_at_all\n")
    session = project.run("--mst")
    assert session.code == 2
    assert "no_such_module_at_all" in session.out
    assert session.folders == ()
    going_on = project.run("--mst", "--continue-on-collection-errors")
    assert going_on.code == 1
    assert going_on.run.verdicts == {"fine": "passed"}


def test_a_skip_does_not_hide_what_breaks_beside_it(project: EvalProject) -> None:
    project.eval(case("unused", OK), clientOptions={"script": [OK]}, servers={})
    project.test_file(
        """
        @pytest.fixture(scope="module")
        def broken_teardown():
            yield
            raise OSError("cannot clean up")

        @pytest.fixture
        def elsewhere(broken_teardown): pytest.skip("not here")

        @pytest.mark.mst(input="x", config="desk.eval.json")
        def test_case(elsewhere, trial): assert 0
        """
    )
    session = project.run("--mst", "test_evals.py")
    assert session.code == 1, session.text
    assert "1 skipped, 1 error" in session.out
    assert "OSError: cannot clean up" in session.out
