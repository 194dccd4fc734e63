"""What was edited between a run and its resumption: only that is made again, and it is named."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.eval_project import (
    EvalProject,
    Json,
    Session,
    StoredRun,
    answer,
    call,
    case,
    desk,
)
from tests.plugin.resumed import (
    Files,
    begun,
    changed_files,
    client_inputs,
    python_project,
)

COLLECTED = {"input", "script", "model", "case options"}
GRADED = {"assertion", "expected"}
UNTOUCHED = {"tag", "description", "trials", "threshold", "order", "same"}


def finder(name: str, **more: Any) -> Json:
    return case(name, call("find", case=name), answer("ok"), **more)


def first_cases() -> list[Json]:
    names = sorted(COLLECTED | GRADED | UNTOUCHED | {"removed", "old name"})
    return [finder(name) for name in names]


def edited_cases() -> list[Json]:
    """Return the cases after an edit of each, named after what is edited of it."""
    edits: dict[str, Json] = {
        "input": {"input": "Do something else"},
        "model": {"model": "m-2"},
        "assertion": {"assertions": {"containsText": ["ok", "k"]}},
        "expected": {"expected": {"answer": "ok"}},
        "tag": {"tags": ["smoke"]},
        "description": {"description": "what it is for"},
        "trials": {"trials": 3},
        "threshold": {"passThreshold": 0.5},
    }
    cases = {one["id"]: {**one, **edits.get(one["id"], {})} for one in first_cases()}
    cases["script"]["clientOptions"] = {"script": [call("find", case="script"), answer("ok!")]}
    cases["case options"]["clientOptions"] = {
        **cases["case options"]["clientOptions"],
        "maxTurns": 5,
    }
    del cases["removed"]
    cases["old name"]["id"] = "new name"
    return [finder("added"), *reversed(cases.values())]


@dataclass(frozen=True)
class Edited:
    """A run, taken up after edits, and once more after none."""

    resumed: Session
    again: Session
    run: StoredRun
    before: Files
    after: Files
    last: Files
    called: list[str]
    """The cases whose clients called the server after the edits."""
    called_again: list[str]

    def what_of(self, case_id: str) -> str | None:
        """Return what is said of one case before anything is done."""
        start = f"  {case_id} [default]: "
        lines = [one for one in self.resumed.out.splitlines() if one.startswith(start)]
        return lines[0].removeprefix(start) if lines else None


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Edited:
    project = EvalProject(tmp_path_factory.mktemp("edited"))
    project.eval(*first_cases())
    first = project.run("--mst")
    assert first.code == 0, first.text
    folder = first.run.folder

    def called() -> list[str]:
        given = [one["arguments"]["case"] for one in project.desk_lines if "call" in one]
        project.desk_log.unlink()
        return sorted(given)

    def taken_up() -> Session:
        return project.run("--mst", "--mst-resume", folder.name)

    before = project.attempts(first.run)
    called()
    project.eval(*edited_cases(), timeout=77_000, concurrency=3)
    resumed = taken_up()
    after, given = project.attempts(StoredRun(folder)), called()
    again = taken_up()
    run = StoredRun(folder)
    last = project.attempts(run)
    return Edited(resumed, again, run, before, after, last, given, called())


def test_only_what_could_change_what_the_client_did_is_collected(edited: Edited) -> None:
    assert edited.resumed.code == 0, edited.resumed.text
    assert edited.called == sorted(COLLECTED)
    assert edited.resumed.taken_up == [(len(UNTOUCHED) + 2, len(COLLECTED), len(GRADED), 0)]


def test_only_what_was_edited_is_touched(edited: Edited) -> None:
    changed = {name.split("/")[-2] for name in changed_files(edited.before, edited.after)}
    assert changed == {name.replace(" ", "_") for name in COLLECTED | GRADED} or all(
        any(one.startswith(name.split()[0]) for name in COLLECTED | GRADED) for one in changed
    )
    assert len(changed) == len(COLLECTED | GRADED)
    for name in GRADED:
        trace = f"traces/default/{name}/0.json"
        assert edited.run.files[trace]["startedAt"] in edited.before[trace][0].decode()


@pytest.mark.parametrize(
    ("case_id", "said"),
    [
        ("input", "input changed: collected anew"),
        ("script", "options changed: collected anew"),
        ("case options", "options changed: collected anew"),
        ("model", "model changed: collected anew"),
        ("assertion", "what it is graded by has changed"),
        ("expected", "what it is graded by has changed"),
        ("removed", "is there no more: what is stored of it is kept"),
        ("old name", "is called 'new name' now: what is stored under its old name is kept"),
        ("added", "is new: no part of this run"),
        *((name, None) for name in sorted(UNTOUCHED)),
        ("new name", None),
    ],
)
def test_what_changed_is_named(edited: Edited, case_id: str, said: str | None) -> None:
    assert edited.what_of(case_id) == said


def test_an_edited_case_has_the_results_of_what_it_is_now(edited: Edited) -> None:
    assert edited.run.trace_file("script")["trace"]["answer"] == "ok!"
    assert set(edited.run.verdicts) == {one["id"] for one in first_cases()}
    assert set(edited.run.verdicts.values()) == {"passed"}
    assert [one["kind"] for one in edited.run.trial("input")["replaced"]] == ["trial"]
    counts = begun(edited.run)
    assert {name for name, count in counts.items() if count == 2} == COLLECTED
    assert edited.run.ledger["planned"] == len(first_cases())  # `trials` does not grow a run


def test_editing_nothing_collects_nothing(edited: Edited) -> None:
    assert edited.again.code == 0, edited.again.text
    assert edited.again.taken_up == [(len(first_cases()), 0, 0, 0)]
    assert edited.called_again == []
    assert edited.last == edited.after


VARIANTS = ("same", "args", "model", "options", "template")


def test_editing_a_variant_collects_that_variant_only(project: EvalProject) -> None:
    def write(*, edited: bool) -> None:
        new: dict[str, Json] = {
            "args": {"servers": ["second"]},
            "model": {"model": "m-2"},
            "options": {"clientOptions": {"maxTurns": 9}},
            "template": {"inputTemplate": "Please: {{input}}"},
        }
        old: dict[str, Json] = {"args": {"servers": ["second"]}}
        servers = {"desk": desk(), "second": desk(*(["reads"] if edited else []))}
        project.eval(
            case("one", answer("ok")),
            variants=[
                {"name": name, "servers": ["desk"], **(new if edited else old).get(name, {})}
                for name in VARIANTS
            ],
            servers=servers,
        )

    write(edited=False)
    first = project.run("--mst")
    assert first.code == 0, first.text
    before = project.attempts(first.run)
    write(edited=True)
    session = project.run("--mst", "--mst-resume", first.run.folder.name)
    assert session.code == 0, session.text
    assert session.taken_up == [(1, len(VARIANTS) - 1, 0, 0)]
    for name, part in zip(VARIANTS[1:], ("servers", "model", "options", "input"), strict=True):
        assert f"  one [{name}]: {part} changed: collected anew" in session.out
    changed = changed_files(before, project.attempts(first.run))
    assert {name.split("/")[-3] for name in changed} == set(VARIANTS[1:])


def test_other_tools_are_named_and_collect_where_that_is_asked_for(project: EvalProject) -> None:
    project.eval(finder("one"), finder("two"))
    first = project.run("--mst")
    run = first.run.folder.name
    before = project.attempts(first.run)
    project.environ["DESK_WORDS"] = "more"
    lenient = project.run("--mst", "--mst-resume", run)
    assert lenient.taken_up == [(2, 0, 0, 0)]
    named = "tools differ from those the run was started with: desk: +archive"
    assert named in lenient.out
    assert " changed (--mst-strict-tools collects anew)" in lenient.out
    assert project.attempts(first.run) == before
    strict = project.run("--mst", "--mst-resume", run, "--mst-strict-tools")
    assert (strict.code, strict.taken_up) == (0, [(0, 2, 0, 0)]), strict.text
    assert strict.count("tools changed: collected anew") == 2
    last = project.run("--mst", "--mst-resume", run, "--mst-strict-tools")
    assert last.taken_up == [(2, 0, 0, 0)]
    assert "tools differ" not in last.out  # all that is there was collected with these


def test_a_server_that_is_down_changes_nothing_that_is_kept(project: EvalProject) -> None:
    project.eval(finder("one"), finder("two"), case("bad", answer("no")))
    first = project.run("--mst")
    assert first.code == 1
    before = project.attempts(first.run)
    project.environ["DESK_WORDS"] = "exit"
    session = project.run("--mst", "--mst-resume", first.run.folder.name, "--mst-strict-tools")
    assert session.code == 1, session.text
    assert session.taken_up == [(3, 0, 0, 0)]
    assert "tools differ" not in session.out
    assert project.attempts(first.run) == before
    assert StoredRun(first.run.folder).verdicts == first.run.verdicts


PYTHON = """
    def mst_case(text, **more):
        return pytest.mark.mst(input=text, config="desk.json", **more)

    @mst_case("same")
    def test_same(trial):
        assert trial.answer == "ok"

    @mst_case("looks")
    def test_looks(trial):
        assert trial.answer == "ok"

    @mst_case("marks")
    def test_marks(trial):
        assert trial.answer == "ok"

    @mst_case("grades")
    def test_grades(trial):
        assert trial.answer == "ok"

    @mst_case("marked writes")
    def test_marked_writes(trial):
        assert trial.answer == "ok"

    @mst_case("input")
    def test_input(trial):
        assert trial.answer == "ok"

    @mst_case("removed")
    def test_removed(trial):
        assert trial.answer == "ok"

    @mst_case("old")
    def test_old_name(trial):
        assert trial.answer == "ok"

    @mst_case("runs", trials=2)
    def test_runs(mst):
        assert mst.run_sync().answer == "ok"

    @mst_case("looks too")
    def test_runs_looks(mst):
        assert mst.run_sync().answer == "ok"

    @pytest.mark.parametrize("number", [1, 2])
    @mst_case("parameters")
    def test_parameters(trial, number):
        assert number
        assert trial.answer == "ok"
"""

PYTHON_EDITS = (
    (
        '''def test_looks(trial):
        assert trial.answer == "ok"''',
        """def test_looks(
        trial,
    ):
        # why it is so

        assert (trial.answer == 'ok')""",
    ),
    ('mst_case("marks")', 'mst_case("marks", trials=4, timeout=9, tags=["a"], pass_threshold=0.1)'),
    (
        '''def test_grades(trial):
        assert trial.answer == "ok"''',
        """def test_grades(trial):
        assert trial.answer.startswith("o")""",
    ),
    (
        """@mst_case("marked writes")""",
        """@pytest.mark.writes()
    @mst_case("marked writes")""",
    ),
    ('mst_case("input")', 'mst_case("another input")'),
    (
        """    @mst_case("removed")
    def test_removed(trial):
        assert trial.answer == "ok"
""",
        "",
    ),
    ("test_old_name", "test_new_name"),
    (
        """def test_runs(mst):
        assert mst""",
        """def test_runs(mst):
        assert True
        assert mst""",
    ),
    (
        """def test_runs_looks(mst):
""",
        """def test_runs_looks(mst):  # why it is so
""",
    ),
    ('"number", [1, 2]', '"number", [2, 1, 3]'),
)


def test_editing_tests_collects_and_grades_only_what_it_has_to(tmp_path: Path) -> None:
    project = python_project(tmp_path, PYTHON)
    first = project.run("--mst")
    assert first.code == 0, first.text
    run = first.run
    before, _ = project.attempts(run), client_inputs(project)
    source = PYTHON
    for old, new in PYTHON_EDITS:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    project.test_file(source)
    session = project.run("--mst", "--mst-resume", run.folder.name)
    assert session.code == 0, session.text
    assert client_inputs(project) == ["another input", "runs", "runs"]
    changed = {name.split("/")[-2] for name in changed_files(before, project.attempts(run))}
    assert changed == {"test_input", "test_runs", "test_grades", "test_marked_writes"}
    assert session.taken_up == [(8, 3, 2, 0)]
    assert session.has(
        "  test_grades [default]: what it is graded by has changed",
    )
    assert session.has("  test_input [default]: input changed: collected anew")
    assert "  test_removed [default]: is there no more" in session.out
    assert "  test_old_name [default]: is called 'test_new_name' now" in session.out
    assert "  test_parameters[3] [default]: is new: no part of this run" in session.out
    again = project.run("--mst", "--mst-resume", run.folder.name)
    assert (again.code, again.taken_up) == (0, [(13, 0, 0, 0)])
    assert client_inputs(project) == []


def test_editing_the_fixture_that_makes_the_client_collects_all_that_use_it(tmp_path: Path) -> None:
    project = python_project(tmp_path, PYTHON)
    first = project.run("--mst", "-k", "same or grades")
    assert first.code == 0, first.text
    conftest = project.root / "conftest.py"
    text = conftest.read_text()
    conftest.write_text(text.replace("    return agent", "    chosen = agent\n    return chosen"))
    session = project.run("--mst", "--mst-resume", first.run.folder.name)
    assert (session.code, session.taken_up) == (0, [(0, 2, 0, 0)]), session.text
    assert session.count("source of the client changed: collected anew") == 2
