"""Which run is taken up again, with what it was started with, and when that is refused."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.plugin.eval_project import (
    Bell,
    EvalProject,
    Json,
    StoredRun,
    answer,
    call,
    case,
)
from tests.plugin.resumed import begun, changed_files
from tests.store.old_runs import OLD_RUN_ID, OldRun


def cases_of(name: str, *, stopping: bool) -> list[Json]:
    """Return cases of which the first one stops the session, given `-x`."""
    first = case(f"{name}-0", call("find"), answer("no" if stopping else "ok"))
    return [first, *(case(f"{name}-{n}", call("find"), answer("ok")) for n in range(1, 6))]


def unfinished(project: EvalProject, *options: str, name: str = "desk") -> StoredRun:
    """Start a run that stops after its first case."""
    project.eval(*cases_of(name, stopping=True), name=name)
    session = project.run("--mst", "-x", "--mst-concurrency", "1", *options)
    assert session.code == 1, session.text
    run = session.run_of(name)
    assert run.ledger["unstarted"] >= 2
    return run


def finished(folder: Path) -> StoredRun:
    """Return a run that nothing is left to do of."""
    run = StoredRun(folder)
    assert run.ledger["graded"] == run.ledger["planned"] == len(list(begun(run).elements()))
    return run


@pytest.mark.parametrize("names_it_by", ["short form", "folder", "a copy"])
def test_a_run_is_named_by_what_a_user_has_of_it(project: EvalProject, names_it_by: str) -> None:
    run = unfinished(project)
    folder, more = run.folder, list[str]()
    before = project.stored()
    match names_it_by:
        case "short form":
            named = folder.name.rpartition("-")[2]
        case "folder":
            named = os.path.relpath(folder, project.root)
        case _:
            copied = shutil.copytree(project.root / ".mst-results", project.root / "elsewhere")
            named, more = folder.name, ["--mst-results", "elsewhere"]
            folder = copied / folder.relative_to(project.root / ".mst-results")
    session = project.run("--mst", "--mst-resume", named, *more)
    assert session.code == 1, session.text
    assert session.folders == ()
    finished(folder)
    assert (project.stored() == before) is (names_it_by == "a copy")


def test_the_newest_unfinished_run_of_each_selected_eval_is_taken_up(project: EvalProject) -> None:
    older = unfinished(project, name="one")
    project.eval(*cases_of("two", stopping=False), name="two")
    whole = project.run("--mst", "two.eval.json").run
    project.eval(*cases_of("two", stopping=True), name="two")
    session = project.run("--mst", "-x", "--mst-concurrency", "1")
    newest = {name: session.run_of(name).folder for name in ("one", "two")}
    before = project.stored()
    planned = project.run("--mst", "--mst-resume", "--collect-only", "-q")
    assert planned.code == 0, planned.text
    assert len(planned.taken_up) == 2
    assert project.stored() == before
    one = project.run("--mst", "--mst-resume=", "one.eval.json")
    assert len(one.taken_up) == 1
    finished(newest["one"])
    resumed = project.run("--mst", "--mst-resume")
    # of eval one an older run is unfinished still, and becomes the newest unfinished one
    assert len(resumed.taken_up) == 2, resumed.text
    finished(newest["two"])
    finished(older.folder)
    none = project.run("--mst", "--mst-resume")
    assert none.code == 4, none.text
    assert "no selected eval has an unfinished run in" in none.err
    assert whole.folder.name in none.err
    assert none.folders == ()


def test_a_run_of_a_python_file_and_one_of_an_eval_are_taken_up_together(
    project: EvalProject,
) -> None:
    project.eval(name="named", file="named.json")
    project.write(
        "conftest.py",
        """
        import pytest

        @pytest.fixture(scope="session")
        def mst_client():
            async def agent(request):
                request.trace.evidence = "structured"  # it asks no server, and says so itself
                return "ok"
            return agent
        """,
    )
    project.test_file(
        """
        @pytest.mark.mst(input="a", config="named.json")
        def test_a(trial): assert trial.answer == "ok"
        """
    )
    run = unfinished(project)
    python = next(one for one in project._folders() if one.parents[1].name == "test_evals")
    session = project.run("--mst", "--mst-resume", "-n2")
    assert sorted(session.taken_up) == [(0, 1, 0, 0), (len(begun(run)), 6 - len(begun(run)), 0, 0)]
    finished(run.folder)
    finished(python)


def test_only_looking_says_the_plan_and_writes_nothing(project: EvalProject) -> None:
    run = unfinished(project)
    before, calls, there = project.stored(), len(project.desk_calls), len(begun(run))
    for options in (["--collect-only"], ["--collect-only", "-n2"], ["--setup-plan"]):
        session = project.run("--mst", "--mst-resume", run.folder.name, *options)
        assert session.taken_up == [(there, 6 - there, 0, 0)], session.text
        assert project.stored() == before
    assert len(project.desk_calls) == calls


def test_the_printed_command_restores_what_the_run_was_started_with(project: EvalProject) -> None:
    tags = {"a-0": "t", "a-1": "t", "a-2": "u", "b-3": "t"}
    project.eval(
        *(
            case(name, call("find"), answer("no" if name == "a-0" else "ok"), tags=[tag])
            for name, tag in tags.items()
        ),
        name="chosen",
        trials=1,
        variants=[{"name": "plain"}, {"name": "other"}],
    )
    options = ["-k", "a-", "--mst-tag", "t", "--mst-trials", "3", "--mst-variant", "plain"]
    first = project.run(
        "--mst", "-x", "--mst-concurrency", "1", "--mst-results", "my runs", *options
    )
    [folder] = (project.root / "my runs").glob("chosen/runs/*")
    planned = {
        (one["id"], one["variant"], one["trials"]) for one in StoredRun(folder).plan["plannedCases"]
    }
    assert planned == {("a-0", "plain", 3), ("a-1", "plain", 3)}
    assert StoredRun(folder).ledger["unstarted"] >= 1
    assert project.desk_starts
    session = project.run(*first.finish_with)
    run = finished(folder)
    assert session.code == 1, session.text
    assert run.ledger["planned"] == 6
    assert {
        (one["id"], one["variant"], one["trials"]) for one in run.plan["plannedCases"]
    } == planned
    assert run.plan["partial"] is True
    assert project._folders() == []


def test_a_run_of_chosen_ids_is_finished_with_those(project: EvalProject) -> None:
    project.eval(*cases_of("a", stopping=True))
    ids = [f"desk.eval.json::a-{n}" for n in (0, 2, 3, 4)]
    first = project.run("--mst", "-x", "--mst-concurrency", "1", *ids)
    session = project.run(*first.finish_with)
    assert session.code == 1, session.text
    assert set(finished(first.run.folder).verdicts) == {"a-0", "a-2", "a-3", "a-4"}


CONTRADICTIONS = [
    (["--mst-trials", "2"], "--mst-trials 2 is not what it was started with"),
    (["-k", "desk-1"], "-k desk-1 is not what it was started with"),
    (["--mst-variant", "nobody"], "--mst-variant nobody is not what it was started with"),
    (["desk.eval.json::desk-1"], "its cases are those it was started with"),
    (["other"], "it is of desk.eval.json, and not of other"),
]


def test_what_contradicts_the_first_start_is_refused_and_nothing_happens(
    project: EvalProject,
) -> None:
    run = unfinished(project)
    (project.root / "other").mkdir()
    before, starts = project.stored(), project.desk_starts
    for options, said in CONTRADICTIONS:
        session = project.run("--mst", "--mst-resume", run.folder.name, *options)
        assert session.code == 4, session.text
        assert said in session.err
        assert "Traceback" not in session.text
    assert project.stored() == before
    assert project.desk_starts == starts


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--mst-resume"], "--mst-resume does nothing without --mst"),
        (["--mst", "--mst-fixed"], "add --mst-resume"),
        (["--mst", "--mst-resume", "x", "--mst-grade", "x"], "exclude each other"),
        (["--mst", "--mst-resume", "0badc0"], "there is no '0badc0'; there are: none"),
        (["--mst", "--mst-grade", "0badc0"], "--mst-grade"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    project: EvalProject, options: list[str], said: str
) -> None:
    session = project.run(*options)
    assert session.code == 4, session.text
    assert said in session.err


def test_a_run_of_an_older_tool_is_refused_before_anything_is_collected(
    project: EvalProject,
) -> None:
    project.eval(*cases_of("a", stopping=False))
    old = OldRun(project.root / ".mst-results", "desk")
    before = project.stored()
    for option in ("--mst-resume", "--mst-grade"):
        session = project.run("--mst", option, OLD_RUN_ID)
        assert session.code == 4, session.text
        assert str(old.folder / "run.json") in session.err
        assert "nothing was collected" in session.err
    assert project.stored() == before
    assert project.desk_starts == 0


def test_a_run_that_another_session_uses_is_refused_and_its_holder_is_named(
    project: EvalProject, bell: Bell
) -> None:
    project.eval(case("a", answer("ok")), case("b", call("stall"), answer("ok")))
    with project.started("--mst") as first:
        bell.hear(1)
        [folder] = project._folders()
        before = project.stored()
        session = project.run("--mst", "--mst-resume", folder.name)
        assert session.code == 4, session.text
        assert f"the run is in use by process {first.process.pid}" in session.err
        assert project.stored() == before
        first.kill()
    project.eval(case("a", answer("ok")), case("b", answer("ok")))
    resumed = project.run("--mst", "--mst-resume", folder.name)
    assert (resumed.code, resumed.taken_up) == (0, [(1, 1, 0, 0)]), resumed.text


def test_of_two_resumptions_at_once_the_second_finds_what_the_first_has_made(
    project: EvalProject,
) -> None:
    run = unfinished(project)
    with project.started("--mst", "--mst-resume", run.folder.name) as one:
        other = project.run("--mst", "--mst-resume", run.folder.name)
        assert one.ended().code == other.code == 1, other.text
    after = finished(run.folder)
    assert len(after.plan["resumptions"]) == 2


def test_two_sessions_of_one_eval_at_once_are_both_right(project: EvalProject) -> None:
    project.eval(*cases_of("a", stopping=False), trials=2)
    with project.started("--mst") as one, project.started("--mst") as other:
        assert one.ended().code == other.ended().code == 0
    runs = [StoredRun(folder) for folder in project._folders()]
    assert len(runs) == 2
    for run in runs:
        assert finished(run.folder).ledger["graded"] == 12


def test_damaged_files_are_told_and_made_again(project: EvalProject) -> None:
    project.eval(*cases_of("a", stopping=False))
    run = project.run("--mst").run
    cut = run.folder / "traces" / "default" / "a-1" / "0.json"
    cut.write_bytes(cut.read_bytes()[:100])
    journal = run.folder / "journal.jsonl"
    journal.write_bytes(journal.read_bytes() + b'{"kind": "begun", "varia')
    for name in ("results.json", "summary.json"):
        path = run.folder / name
        path.write_bytes(path.read_bytes()[:50])
    before = project.attempts(run)
    session = project.run("--mst", "--mst-resume")
    assert (session.code, session.taken_up) == (0, [(5, 1, 0, 0)]), session.text
    assert "2 lines and files that cannot be read" in session.out
    made = {name.split("/")[-2] for name in changed_files(before, project.attempts(run))}
    assert made == {"a-1"}
    [aside] = run.folder.glob("superseded/*/traces/default/a-1/0.json")
    assert aside.read_bytes() == before["traces/default/a-1/0.json"][0]
    results = json.loads((run.folder / "results.json").read_text())
    assert {one["verdict"] for one in results["cases"]} == {"passed"}


def test_a_damaged_plan_is_refused_with_its_place(project: EvalProject) -> None:
    project.eval(*cases_of("a", stopping=False))
    run = project.run("--mst").run
    (run.folder / "run.json").write_text('{"format": "mst.run/v1", "ki')
    before = project.stored()
    for options in ([run.folder.name], []):
        session = project.run("--mst", "--mst-resume", *options)
        assert session.code == 4, session.text
        assert str(run.folder / "run.json") in session.err, session.err
        assert "Traceback" not in session.text
    assert project.stored() == before


ODD = ("a\u2028b", "a\ud83db", "a\u0085b", "a\vb", "a\fb", "a\x1cb", "a\u2029\r\nb")
"""Line ends to Python and to nobody else, and half a character; the first ones may be ids too."""


def test_odd_texts_and_foreign_files_are_no_change(project: EvalProject) -> None:
    project.eval(
        *(
            case(
                text if at < 2 else f"c{at}", call("find", q=text), answer(f"ok {text}"), input=text
            )
            for at, text in enumerate(ODD)
        )
    )
    first = project.run("--mst")
    assert first.code == 0, first.text
    run = first.run
    foreign = {
        run.folder.parents[2] / "notes.txt",
        run.folder.parents[1] / "runs" / "mine" / "notes.txt",
        run.folder / "traces" / "notes.json",
        run.folder / "traces" / "default" / "else" / "0.json",
        run.folder / "scores" / "mine" / "notes.txt",
        run.folder / "superseded" / "notes.txt",
        run.folder / "superseded" / "mine" / "traces" / "default" / "else" / "0.json",
    }
    for path in foreign:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    before, calls = project.stored(), len(project.desk_calls)
    session = project.run("--mst", "--mst-resume", run.folder.name)
    assert (session.code, session.taken_up) == (0, [(len(ODD), 0, 0, 0)]), session.text
    assert "cannot be read" not in session.out
    assert len(project.desk_calls) == calls
    changed = {Path(name).name for name in changed_files(before, project.stored())}
    assert changed == {"run.json", "results.json", "summary.json", "latest.json", "lock"}


def test_what_a_fatal_error_left_unstarted_is_made_once_it_is_gone(project: EvalProject) -> None:
    def write(*steps: Json) -> None:
        cases = [case("stops", *steps), *(case(f"c-{n}", answer("ok")) for n in range(4))]
        project.eval(*cases, concurrency=1)

    write({"fail": {"broke": "provider", "scope": "run", "reason": "the key is wrong"}})
    first = project.run("--mst")
    assert first.code == 10, first.text
    run = first.run
    assert run.ledger["unstarted"] >= 3
    again = project.run(*first.finish_with)  # its gates are open again, and closed by this
    assert again.code == 10, again.text
    assert begun(StoredRun(run.folder))["stops"] == 2
    assert again.count("stopped: run: the key is wrong") == 1
    write(answer("ok"))
    last = project.run(*again.finish_with)
    assert last.code == 0, last.text
    assert "stopped:" not in last.out
    after = StoredRun(run.folder)
    assert "stops" not in after.plan
    assert len(list(run.folder.glob("superseded/*/stops.jsonl"))) == 2


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "two workers"])
def test_a_run_none_of_whose_cases_is_there_any_more_says_what_it_came_to(
    project: EvalProject, workers: tuple[str, ...]
) -> None:
    run = unfinished(project)
    before = project.attempts(run)
    project.eval(case("another", answer("ok")))
    session = project.run("--mst", "--mst-resume", run.folder.name, *workers)
    assert session.code == 1, session.text
    assert project.attempts(run) == before
    assert StoredRun(run.folder).verdicts == run.verdicts
    assert session.count(": is there no more: what is stored of it is kept") == 6
    assert "no eval case selected" not in session.out
