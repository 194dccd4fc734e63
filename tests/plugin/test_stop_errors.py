"""Fatal errors: what they stop, what they leave alone, and where that is told."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.plugin.eval_project import EvalProject, Session, StoredRun, answer, case

OK = answer("ok")
RUN = "assert (await mst.run()).answer == 'ok'"
VARIANTS = [{"name": "a"}, {"name": "b"}]
CASES = """
CASE = pytest.mark.mst(input="x", config="desk.eval.json", trials={trials})

@CASE
{kind}def test_one({fixtures}):
    {body}

@CASE
{kind}def test_two({fixtures}):
    {body}
"""


def states(run: StoredRun) -> dict[str, str]:
    """Return how the attempts of each case by variant stand, a letter each.

    Graded, ungraded, infrastructure failure, and a dash for unstarted.
    """
    found = {}
    for one in run.results["cases"]:
        name = f"{one['id'].removeprefix('test_')}-{one['variant']}"
        found[name] = "".join(_letter(trial) for trial in one["trials"])
    return found


def _letter(trial: dict[str, Any]) -> str:
    if trial["ending"] is None:
        return "-"
    if trial["ending"]["kind"] == "infrastructure":
        return "I"
    return "U" if trial["verdict"] == "ungraded" else "G"


def stops(run: StoredRun) -> list[tuple[str, ...]]:
    """Return the stops of a run: the names of what each closes, and why."""
    names = ("scope", "variant", "case", "reason")
    return [tuple(stop[name] for name in names if name in stop) for stop in run.plan["stops"]]


def cases(project: EvalProject, name: str, top: str, **more: Any) -> None:
    """Write a file with two tests, which is an eval of its own."""
    given = {"trials": 2, "kind": "", "fixtures": "trial", "body": "assert trial.answer == 'ok'"}
    head = "from pytest_mst import CaseFatalError, RunFatalError, VariantFatalError\n"
    project.test_file(head + top + CASES.format(**(given | more)), name=f"test_{name}.py")


def config(project: EvalProject, **more: Any) -> None:
    """Write the config that test files name, in a folder that is no eval of the session."""
    options = {"clientOptions": {"script": [OK]}}
    project.eval(case("unused", OK), **{"variants": VARIANTS, **options, **more})


def is_whole(session: Session, code: int = 10) -> None:
    """Check what holds of every session, whatever was stopped; each run adds up as it is read."""
    assert session.code == code, session.text
    assert "INTERNALERROR" not in session.text
    assert "Traceback" not in session.err


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("case", {"one-a": "I-", "one-b": "GG", "two-a": "I-", "two-b": "GG"}),
        ("variant", {"one-a": "I-", "one-b": "GG", "two-a": "--", "two-b": "GG"}),
        ("run", {"one-a": "I-", "one-b": "--", "two-a": "--", "two-b": "--"}),
    ],
)
def test_a_failure_stops_what_its_scope_says(
    project: EvalProject, scope: str, expected: dict[str, str]
) -> None:
    fails = {"fail": {"broke": "provider", "reason": "no quota", "scope": scope}}
    variants = [
        {"name": "a", "clientOptions": {"scripts": [[fails], [OK]]}},
        {"name": "b", "clientOptions": {"script": [OK]}},
    ]
    two = [
        {"id": name, "input": "x", "assertions": {"containsText": "ok"}} for name in ("one", "two")
    ]
    project.eval(*two, variants=variants, trials=2)
    project.eval(case("other", OK, trials=2), name="other")
    session = project.run("--mst", "--mst-concurrency", "1")
    is_whole(session)
    run = session.run_of("desk")
    assert states(run) == expected
    assert run.ledger["unstarted"] == "".join(expected.values()).count("-")
    assert session.run_of("other").ledger["graded"] == 2
    assert "stops" not in session.run_of("other").plan
    by_scope = {
        "case": [("case", "a", "one", "no quota"), ("case", "a", "two", "no quota")],
        "variant": [("variant", "a", "no quota")],
        "run": [("run", "no quota")],
    }
    assert stops(run) == by_scope[scope]
    closed = {"case": "case one [a]", "variant": "variant a", "run": "run"}[scope]
    locator = run.trial("one", variant="a")["locator"]
    assert run.plan["stops"][0]["locator"] == locator
    assert f"stopped: {closed}: no quota ({locator})" in session.out.splitlines()
    for trial in (one for found in run.results["cases"] for one in found["trials"]):
        begun = [line for line in run.journal if line["locator"] == trial["locator"]]
        assert bool(begun) is (trial["ending"] is not None)
    assert run.verdicts["one::a"] == "incomplete"


FIXTURE = """
@pytest.fixture{scope}
def base(request):
    os.write(LOG, request.node.name.encode() + b"\\n")
    if {when}:
        {raising}

LOG = os.open({log!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
"""
RAISING = {
    "case": 'raise ValueError("lost") from CaseFatalError("gone", cause="network")',
    "variant": (
        'try:\n            raise VariantFatalError("gone", cause="network")\n'
        '        except VariantFatalError:\n            raise KeyError("lost")'
    ),
    "run": ('raise ExceptionGroup("lost", [KeyError(1), RunFatalError("gone", cause="network")])'),
}
"""One error of each scope, each within another in its own way."""


def test_a_function_fixture_stops_what_its_error_reaches(project: EvalProject) -> None:
    config(project)
    expected = {
        "case": {"one-a": "I-", "one-b": "GG", "two-a": "GG", "two-b": "GG"},
        "variant": {"one-a": "I-", "one-b": "GG", "two-a": "--", "two-b": "GG"},
        "run": {"one-a": "I-", "one-b": "--", "two-a": "--", "two-b": "--"},
    }
    for scope, raising in RAISING.items():
        fixture = FIXTURE.format(
            scope="",
            when="request.node.name == 'test_one[a]'",
            raising=raising,
            log=str(project.root / f"{scope}.log"),
        )
        cases(project, scope, fixture, fixtures="base, trial")
    for scope, attempts in expected.items():  # one by one: no attempt is begun ahead of its file
        session = project.run("--mst", "--mst-concurrency", "1", f"test_{scope}.py")
        is_whole(session)
        run = session.run
        assert states(run) == attempts
        ending = run.ending("test_one", variant="a")
        assert (ending["broke"], ending["reason"]) == ("network", "gone")
        assert (ending["scope"], ending["retryable"]) == (scope, True)
        assert "FatalError: gone" in ending["detail"]
        set_up = (project.root / f"{scope}.log").read_text().split()
        begun = [name for name, letters in attempts.items() for one in letters if one != "-"]
        assert sorted(set_up) == sorted(f"test_{'['.join(one.split('-'))}]" for one in begun)


def _files(project: EvalProject) -> list[str]:
    return sorted(path.name for path in project.root.glob("test_*.py"))


def test_a_module_fixture_stops_what_its_error_reaches(project: EvalProject) -> None:
    config(project)
    for scope, raising in RAISING.items():
        fixture = FIXTURE.format(
            scope="(scope='module')",
            when="True",
            raising=raising,
            log=str(project.root / f"{scope}.log"),
        )
        cases(project, scope, fixture, fixtures="base, trial")
    session = project.run("--mst", *_files(project))
    is_whole(session)
    met_by_each = {"one-a": "I-", "one-b": "I-", "two-a": "I-", "two-b": "I-"}
    met_by_first = {"one-a": "I-", "one-b": "I-", "two-a": "--", "two-b": "--"}
    met_once = {"one-a": "I-", "one-b": "--", "two-a": "--", "two-b": "--"}
    assert states(session.run_of("test_case")) == met_by_each
    assert states(session.run_of("test_variant")) == met_by_first
    assert states(session.run_of("test_run")) == met_once
    assert stops(session.run_of("test_run")) == [("run", "gone")]


def test_a_module_fixture_around_a_case_of_an_eval_file_leaves_it_unstarted(
    project: EvalProject,
) -> None:
    project.eval(case("one", OK, trials=2), case("two", OK))
    project.write(
        "conftest.py",
        """
        import pytest
        from pytest_mst import RunFatalError

        @pytest.fixture(scope="module", autouse=True)
        def base():
            print("SET UP")
            raise RunFatalError("the database is gone")
        """,
    )
    session = project.run("--mst", "-s")
    is_whole(session)
    run = session.run
    assert run.ledger == {**dict.fromkeys(run.ledger, 0), "planned": 3, "unstarted": 3}
    assert run.verdicts == {"one": "incomplete", "two": "incomplete"}
    assert [one["reasons"] for one in run.results["cases"]] == [
        ["unstarted: never began (2 attempts)"],
        ["unstarted: never began"],
    ]
    assert stops(run) == [("run", "the database is gone")]
    assert session.count("SET UP") == 1
    assert "= 2 incomplete in" in session.out


def test_a_body_that_grades_leaves_its_trial_ungraded_and_stops_the_rest(
    project: EvalProject,
) -> None:
    config(project)
    for scope, raising in RAISING.items():
        error = raising.replace('ValueError("lost")', 'AssertionError("lost")')
        body = f"if 'test_one[a]' in os.environ['PYTEST_CURRENT_TEST']:\n        {error}"
        cases(project, scope, "", trials=3, body=f"assert trial.answer == 'ok'\n    {body}")
    session = project.run("--mst", "--mst-concurrency", "1", *_files(project))
    is_whole(session)
    for scope in RAISING:
        run = session.run_of(f"test_{scope}")
        found = states(run)
        assert run.ending("test_one", variant="a") == {"kind": "trial"}
        assert run.trial("test_one", variant="a")["verdict"] == "ungraded"
        assert found["one-a"].startswith("U")
        assert found["one-a"].endswith("-")  # of the second, only the engine knows if it had begun
        assert found["one-b"] == ("GGG" if scope != "run" else "---")
        assert found["two-a"] == ("GGG" if scope == "case" else "---")
        assert found["two-b"] == ("GGG" if scope != "run" else "---")
        assert run.plan["stops"][0]["scope"] == scope
        assert run.plan["stops"][0]["reason"] == "gone"


def test_a_body_that_runs_its_client_stops_before_in_and_after_it(project: EvalProject) -> None:
    config(project)
    is_first = "if 'test_one[a]' in os.environ['PYTEST_CURRENT_TEST']:"
    stop = f"{is_first}\n        raise VariantFatalError('gone')"
    live = {"kind": "async ", "fixtures": "mst"}
    cases(project, "before", "", body=f"{stop}\n    {RUN}", **live)
    cases(project, "after", "", body=f"{RUN}\n    {stop}", **live)
    caught = f"try:\n        raise VariantFatalError\n    except VariantFatalError:\n        {RUN}"
    cases(project, "kept", "", body=caught, **live)
    client = """
@pytest.fixture(scope="module")
def mst_client():
    async def agent(request):
        request.trace.evidence = "structured"  # it asks no server, and says so itself
        raise OSError("lost") from VariantFatalError("gone")
    return agent
"""
    cases(project, "within", client, body="await mst.run()", **live)
    session = project.run("--mst", *_files(project))
    is_whole(session)
    rest = {"one-b": "GG", "two-a": "--", "two-b": "GG"}
    before = session.run_of("test_before")
    assert states(before) == {"one-a": "I-", **rest}
    assert before.ending("test_one", variant="a")["scope"] == "variant"
    assert states(session.run_of("test_after")) == {"one-a": "U-", **rest}
    assert states(session.run_of("test_kept")) == dict.fromkeys({"one-a": "", **rest}, "GG")
    within = session.run_of("test_within")
    assert states(within) == {"one-a": "I-", "one-b": "I-", "two-a": "--", "two-b": "--"}
    assert within.ending("test_one", variant="a")["reason"] == "gone"
    assert stops(within) == [("variant", "a", "gone"), ("variant", "b", "gone")]
    assert session.out.count("stopped: variant a: gone") == 3


def test_a_teardown_that_stops_the_run_changes_no_grade(project: EvalProject) -> None:
    config(project)
    fixture = """
@pytest.fixture
def base():
    yield
    raise RunFatalError("cannot be cleaned up")
"""
    live = {"kind": "async ", "fixtures": "base, mst", "body": RUN}
    cases(project, "down", fixture, **live)
    session = project.run("--mst", "test_down.py")
    is_whole(session, code=1)  # an ordinary error of pytest's
    run = session.run
    assert states(run) == {"one-a": "G-", "one-b": "--", "two-a": "--", "two-b": "--"}
    assert run.trial("test_one", variant="a")["verdict"] == "passed"
    assert stops(run) == [("run", "cannot be cleaned up")]


def test_a_body_that_skips_because_of_a_fatal_error_stops_nothing(project: EvalProject) -> None:
    config(project)
    body = """try:
        raise RunFatalError("no licence here")
    except RunFatalError:
        pytest.skip("no licence")"""
    cases(project, "skips", "", kind="async ", fixtures="mst", body=body)
    session = project.run("--mst", "test_skips.py", "-rs")
    assert session.code in (0, 10), session.text
    assert "stops" not in session.run.plan
    assert session.count("no licence") >= 1


def test_a_skipped_test_stays_skipped_behind_a_closed_gate(project: EvalProject) -> None:
    config(project)
    body = """raise RunFatalError('gone')

@pytest.mark.skip(reason="not yet")
@CASE
def test_zero(trial):
    pass
"""
    cases(project, "later", "", kind="async ", fixtures="mst", body=body)
    session = project.run("--mst", "test_later.py")
    is_whole(session)
    skipped = [(one["id"], one["variant"]) for one in session.run.results["skipped"]]
    assert skipped == [("test_zero", "a"), ("test_zero", "b")]
    assert session.count("2 skipped") == 1


MEETING = """
import contextlib, os
import anyio, pytest
from pytest_mst import RunFatalError

FAILED = []

def meet(name, flags):
    os.close(os.open(os.path.join({folder!r}, name), flags))

def first():
    with contextlib.suppress(FileExistsError):
        os.close(os.open(os.path.join({folder!r}, "first"), os.O_CREAT | os.O_EXCL))
        return True

@pytest.fixture(scope="session")
def mst_client():
    async def agent(request):
        request.trace.evidence = "structured"  # it asks no server, and says so itself
        if first():
            await anyio.to_thread.run_sync(meet, "begun", os.O_RDONLY)
            FAILED.append(True)
            raise RunFatalError("gone")
        await anyio.to_thread.run_sync(meet, "begun", os.O_WRONLY)
        await anyio.to_thread.run_sync(meet, "told", os.O_RDONLY)
        return "ok"
    return agent

def pytest_runtest_logfinish():
    if FAILED:
        FAILED.clear()
        meet("told", os.O_WRONLY)  # the gate is closed; the other one is still under way
"""


@pytest.mark.parametrize("processes", ["0", "2"])
def test_what_is_under_way_ends_and_no_process_begins_another(
    project: EvalProject, processes: str
) -> None:
    config(project, variants=[{"name": "a"}])
    project.write("conftest.py", MEETING.format(folder=str(project.root)))
    for name in ("begun", "told"):
        os.mkfifo(project.root / name)
    project.test_file(
        """
        @pytest.mark.parametrize("number", range(10))
        @pytest.mark.mst(input="x", config="desk.eval.json")
        def test_each(trial, number):
            assert trial.answer == "ok"
        """
    )
    session = project.run(
        "--mst", "-n", processes, "--mst-concurrency", "2", "test_evals.py", within_s=40
    )
    is_whole(session)
    run = session.run
    ledger = {"planned": 10, "graded": 1, "ungraded": 0, "infrastructure": 1, "unstarted": 8}
    assert run.ledger == ledger
    assert sum(line["kind"] == "begun" for line in run.journal) == 2
    assert stops(run) == [("run", "gone")]
    assert session.count("stopped: run: gone (@") == 1
    assert "1 passed, 9 incomplete" in session.out


def test_an_attempt_begun_ahead_is_taken_in_when_its_fixture_stops_the_run(
    project: EvalProject,
) -> None:
    config(project, variants=[{"name": "a"}])
    os.mkfifo(project.root / "begun")
    top = f"""
import anyio
BEGUN = {str(project.root / "begun")!r}

def meet(flags):
    os.close(os.open(BEGUN, flags))

@pytest.fixture(scope="module")
def mst_client():
    async def agent(request):
        request.trace.evidence = "structured"  # it asks no server, and says so itself
        if request.input == "second":
            await anyio.to_thread.run_sync(meet, os.O_WRONLY)
        return "ok"
    return agent

@pytest.fixture
def base(request):
    if request.node.name.startswith("test_second"):
        raise RunFatalError("gone")

@pytest.mark.mst(input="first", config="desk.eval.json")
def test_first(trial):
    meet(os.O_RDONLY)  # until the next one's client acts
    assert trial.answer == "ok"

@pytest.mark.mst(input="second", config="desk.eval.json")
def test_second(base, trial):
    assert trial.answer
"""
    cases(project, "ahead", top, trials=1)
    session = project.run("--mst", "--mst-concurrency", "1", "test_ahead.py", within_s=40)
    is_whole(session)
    found = states(session.run)
    assert found["first-a"] == "G"
    assert found["second-a"] == "U"
    assert found["two-a"] == "-"
    assert stops(session.run) == [("run", "gone")]


def test_a_failed_case_beside_a_stop_is_still_a_failure(project: EvalProject) -> None:
    fails = {"fail": {"broke": "setup", "reason": "gone", "scope": "run"}}
    project.eval(case("wrong", answer("no")), case("stops", fails), case("later", OK))
    session = project.run("--mst", "--mst-concurrency", "1")
    is_whole(session, code=1)
    assert session.run.verdicts == {
        "wrong": "failed",
        "stops": "incomplete",
        "later": "incomplete",
    }


def test_a_stopped_run_is_finished_once_things_are_mended(project: EvalProject) -> None:
    config(project)
    client = """
@pytest.fixture(scope="module")
def mst_client():
    async def agent(request):
        request.trace.evidence = "structured"  # it asks no server, and says so itself
        if not os.path.exists("mended"):
            raise RunFatalError("gone")
        return "ok"
    return agent
"""
    cases(project, "mended", client, kind="async ", fixtures="mst", body=RUN)
    first = project.run("--mst", "test_mended.py")
    is_whole(first)
    assert states(first.run) == {"one-a": "I-", "one-b": "--", "two-a": "--", "two-b": "--"}
    project.write("mended", "")
    again = project.run("--mst", "--mst-resume")
    assert again.code == 0, again.text
    run = StoredRun(first.run.folder)
    assert set(states(run).values()) == {"GG"}
    assert "stops" not in run.plan
    (away,) = (lines for name, lines in run.files.items() if name.endswith("stops.jsonl"))
    assert [line["reason"] for line in away] == ["gone"]
