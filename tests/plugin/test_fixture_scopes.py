"""Fixtures around attempts: function scope for each attempt, wider scopes once."""

from __future__ import annotations

import pytest

from tests.plugin.eval_project import EvalProject, Session, answer, call, case, junit_cases

OK = answer("ok")
CONFTEST = """
import pytest
from pathlib import Path

def note(word):
    with open(Path(__file__).parent / "notes.txt", "a") as file:
        file.write(word + "\\n")

@pytest.fixture(autouse=True)
def each(request):
    note(f"+function {request.node.name}")
    yield
    note(f"-function {request.node.name}")

@pytest.fixture(scope="module")
def once_a_module():
    note("+module")
    yield
    note("-module")

@pytest.fixture(scope="session", autouse=True)
def once():
    note("+session")
    yield
    note("-session")
"""
TESTS = """
CASE = pytest.mark.mst(input="x", config="desk.eval.json", trials=3)

@CASE
def test_first(trial, once_a_module, tmp_path):
    assert trial.answer == "ok"
    (tmp_path / "seen").mkdir()

@CASE
def test_second(trial, once_a_module, monkeypatch, capsys, caplog):
    assert "SEEN" not in os.environ
    monkeypatch.setenv("SEEN", "1")
    print("hello")
    assert capsys.readouterr().out == "hello\\n" and trial.answer
    assert not caplog.records
    import logging
    logging.warning("once")

def test_ordinary(once_a_module): pass
"""


@pytest.fixture(scope="module", params=["0", "2"])
def scoped(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Session, list[str]]:
    project = EvalProject(tmp_path_factory.mktemp("scopes"))
    project.write("conftest.py", CONFTEST)
    project.eval(case("one", OK, trials=2), case("two", OK), clientOptions={"script": [OK]})
    project.test_file(TESTS)
    session = project.run("--mst", "-n", request.param)
    return request.param, session, (project.root / "notes.txt").read_text().splitlines()


def test_all_of_them_pass(scoped: tuple[str, Session, list[str]]) -> None:
    assert scoped[1].code == 0, scoped[1].text
    assert "5 passed" in scoped[1].out


@pytest.mark.parametrize(
    ("name", "times"),
    [("test_first", 3), ("test_second", 3), ("test_ordinary", 1), ("default", 3)],
)
def test_function_fixtures_are_made_for_each_attempt(
    scoped: tuple[str, Session, list[str]], name: str, times: int
) -> None:
    assert scoped[2].count(f"+function {name}") == times
    assert scoped[2].count(f"-function {name}") == times


def test_wider_fixtures_are_made_once(scoped: tuple[str, Session, list[str]]) -> None:
    processes, _, notes = scoped
    most = 1 if processes == "0" else 2
    for scope in ("module", "session"):
        assert 1 <= notes.count(f"+{scope}") == notes.count(f"-{scope}") <= most
    if processes == "0":
        assert notes[0] == "+session"
        assert notes[-2:] == ["-module", "-session"]


def test_a_failing_autouse_fixture_leaves_cases_of_eval_files_ungraded(
    project: EvalProject,
) -> None:
    project.write(
        "conftest.py",
        """
        import pytest

        @pytest.fixture(autouse=True)
        def picky(request):
            if "bad" in request.node.nodeid:
                raise OSError("no such place")

        @pytest.fixture(scope="module", autouse=True)
        def in_module(request):
            if "broken" in request.node.nodeid:
                raise OSError("no such module")
        """,
    )
    project.eval(case("good", OK, trials=2), case("bad", OK, trials=2))
    project.eval(case("any", OK), name="broken")
    session = project.run("--mst", "--junitxml=junit.xml")
    assert session.code == 10
    run = session.run_of("desk")
    assert run.verdicts == {"good": "passed", "bad": "incomplete"}
    assert run.ledger["ungraded"] == 2
    assert "OSError: no such place" in str(run.trial("bad")["graderFailures"])
    broken = session.run_of("broken")
    assert broken.verdicts == {"any": "incomplete"}
    outcomes = junit_cases(project.root / "junit.xml")
    assert sorted(outcomes.values()) == ["error", "error", "passed"]


def test_fixtures_for_eval_cases_say_so_elsewhere(project: EvalProject) -> None:
    project.eval(case("one", OK))
    project.test_file("def test_ordinary(trial): pass\n")
    session = project.run("--mst")
    assert session.code == 1
    assert "mark the test with @pytest.mark.mst" in session.out
    without = project.run()
    assert without.code == 1
    assert "mark the test with @pytest.mark.mst" in without.out


def test_captured_output_of_failed_attempts_is_shown(project: EvalProject) -> None:
    project.eval(case("unused", OK), clientOptions={"script": [call("find"), OK]})
    project.test_file(
        """
        @pytest.mark.mst(input="x", config="desk.eval.json", trials=2)
        def test_it(trial):
            print(f"saw trial {trial.number}")
            assert trial.answer == "no"
        """
    )
    session = project.run("--mst", "test_evals.py")
    assert "saw trial 0" in session.out
    assert "saw trial 1" in session.out
