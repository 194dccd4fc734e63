"""A disk that is full, closed or gone: said with the path and the way out, and nothing claimed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.plugin.eval_project import (
    EvalProject,
    Json,
    Session,
    answer,
    call,
    case,
    write,
)

OK = answer("ok")
LIMIT_BYTES = 40_000
"""Beyond this no file grows, which stands for a disk that is full for it alone."""
pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the limit of a file's size is set as on Linux"
)


def with_start(project: EvalProject, body: str) -> None:
    """Have something happen to the run's folder after it is made, before any attempt."""
    source = f"""
import os
import pathlib
import resource
import shutil
import signal
import pytest

def limit():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, ({LIMIT_BYTES}, {LIMIT_BYTES}))

def at_start():
    (run_json,) = pathlib.Path(".mst-results").glob("*/runs/*/run.json")
    run = run_json.parent
    {body}

@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session):
    at_start()
"""
    (project.root / "conftest.py").write_text(source)
    for name in [name for name in project.environ if name.startswith("COVERAGE_")]:
        del project.environ[name]  # what measures these tests cannot write its own file, either


def fill(name: str) -> str:
    """Return what lets one file of the run take nothing more: readers skip what is in it."""
    return f"""
    file = run / {name!r}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\\n" * {LIMIT_BYTES})
    limit()
"""


def folder_of(session: Session) -> Path:
    (folder,) = session.folders
    return folder


def assert_told(session: Session, path: str, why: str) -> None:
    """Check that the session failed in order, and named the file and what to do."""
    assert session.code not in (0, 5), session.text
    assert "INTERNALERROR" not in session.text
    assert "Traceback" not in session.text
    assert path in session.text
    assert why in session.text


def trials(folder: Path) -> list[Json]:
    """Return the trial files of a run; each there is whole."""
    return [
        json.loads(path.read_text())
        for path in folder.glob("traces/**/*.json")
        if not path.is_symlink()
    ]


def no_half_files(folder: Path) -> None:
    """Check that every document that is there can be read, and that no other is left behind."""
    for path in folder.rglob("*"):
        assert path.suffix != ".tmp", path
        if path.is_file() and path.suffix == ".json":
            json.loads(path.read_text())


def test_a_journal_that_cannot_be_written_lets_no_attempt_begin(project: EvalProject) -> None:
    project.eval(*(case(f"case-{n}", call("post", text="x"), OK) for n in range(3)))
    with_start(project, fill("journal.jsonl"))
    session = project.run("--mst", plugins=("mst",))
    assert session.code == 10, session.text
    assert_told(session, "journal.jsonl", "File too large")
    assert "free some space" in session.text
    assert project.desk_calls == []
    assert "graded 0" in session.out
    no_half_files(folder_of(session))


@pytest.mark.parametrize("document", ["results.json", "summary.json"])
def test_a_document_that_cannot_be_written_is_not_said_to_be_there(
    project: EvalProject, document: str
) -> None:
    project.eval(case("one", call("find"), OK))
    with_start(project, f"(run / {document!r} / 'taken').mkdir(parents=True)")
    session = project.run("--mst", plugins=("mst",))
    assert session.code == 10, session.text
    assert_told(session, document, "Is a directory")
    assert "choose another --mst-results" in session.text
    assert "planned 1 = graded 1" in session.out
    folder = folder_of(session)
    assert not (folder.parents[1] / "latest.json").exists()
    assert len(trials(folder)) == 1
    no_half_files(folder)


def test_a_write_that_could_not_be_recorded_was_not_answered_as_done(
    project: EvalProject,
) -> None:
    project.eval(
        case(
            "posts",
            call("post", text="x"),
            answer("ok {{last.text}}"),
            expected={"writes": [write("post")]},
        ),
        case("finds", call("find"), OK),
    )
    with_start(project, fill("writes/default/posts/0.jsonl"))
    session = project.run("--mst", plugins=("mst",))
    assert session.code == 10, session.text
    assert_told(session, "writes/default/posts/0.jsonl", "File too large")
    folder = folder_of(session)
    by_case = {one["caseId"]: one for one in trials(folder)}
    assert by_case["finds"]["ending"] == {"kind": "trial"}
    ending = by_case["posts"]["ending"]
    assert (ending["broke"], ending["retryable"]) == ("collection", True)
    assert (by_case["posts"].get("trace") or {}).get("answer") is None
    assert "post" not in project.desk_calls
    no_half_files(folder)


@pytest.mark.parametrize("args", [(), ("-n", "2")], ids=["alone", "two workers"])
def test_a_disk_that_fills_up_in_the_middle_of_a_run(
    project: EvalProject, args: tuple[str, ...]
) -> None:
    big = "ok " + "x" * 60_000
    project.eval(
        *(case(f"small-{n}", call("find"), OK) for n in range(3)),
        *(case(f"big-{n}", call("find"), answer(big)) for n in range(3)),
    )
    with_start(project, "limit()")
    session = project.run("--mst", *args)
    assert session.code == 10, session.text
    assert_told(session, "big-", "File too large")
    folder = folder_of(session)
    stored = {str(one["caseId"]) for one in trials(folder)}
    assert stored >= {f"small-{n}" for n in range(3)}
    no_half_files(folder)
    assert "graded 3 + ungraded 0 + infrastructure 3" in session.out


def test_a_folder_that_vanishes_in_the_middle_of_a_run(project: EvalProject) -> None:
    project.eval(case("one", call("find"), OK), case("two", call("find"), OK))
    with_start(project, "shutil.rmtree('.mst-results'); open('.mst-results', 'w').close()")
    session = project.run("--mst", plugins=("mst",))
    assert_told(session, ".mst-results", "was there and is gone")
    assert session.folders == ()
    assert (project.root / ".mst-results").read_text() == ""


@pytest.mark.parametrize(
    ("folder", "why"),
    [("taken/results", "a file is in the place of a folder"), ("/proc/results", "/proc/results")],
)
def test_a_folder_that_nothing_can_be_written_to_is_refused_or_told(
    project: EvalProject, folder: str, why: str
) -> None:
    project.eval(case("one", call("find"), OK))
    project.write("taken", "")
    session = project.run("--mst", "--mst-results", folder, plugins=("mst",))
    assert session.code == 4, session.text
    assert_told(session, folder, why)
    assert "--mst-results" in session.err
    assert project.desk_calls == []
