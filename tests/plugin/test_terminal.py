"""What people see: letters, FAILURES, the closing block, and progress."""

from __future__ import annotations

import os
import pty
import re
import select

import pytest

from tests.plugin.eval_project import (
    Bell,
    EvalProject,
    Session,
    answer,
    call,
    case,
    write,
)

OK = answer("ok")
NO = answer("no, \x1b[31mnot\x07 that")
UNGRADED = """
@pytest.mark.mst(input="x", config="desk.eval.json", trials=2)
def test_unsure(trial):
    {}[trial.answer]

def test_ordinary(): pass
"""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> EvalProject:
    project = EvalProject(tmp_path_factory.mktemp("terminal"))
    post = {"writes": [write("post", arguments={"to": "#team"})]}
    project.eval(
        case("good", OK, trials=2),
        case("bad", NO),
        case("broken", {"fail": {"broke": "network", "reason": "no route"}}),
        case("posts", call("post", to="#team"), OK, expected=post),
        case("posts-elsewhere", call("post", to="#all"), NO, expected=post),
        clientOptions={"script": [OK]},
    )
    project.test_file(UNGRADED)
    return project


@pytest.fixture(scope="module")
def shown(mixed: EvalProject) -> Session:
    return mixed.run("--mst", "-ra")


def test_attempts_and_cases_have_their_letters(shown: Session) -> None:
    assert "desk.eval.json ..PxF!I.PxF" in shown.out
    assert "test_evals.py ??I." in shown.out
    assert re.search(r"\[100%\]", shown.out)
    assert "2 failed, 3 passed, 2 incomplete" in shown.out.splitlines()[-1]


def test_the_closing_block_is_word_for_word(shown: Session) -> None:
    run = shown.run_of("desk")
    locators = {name: run.trial(name)["locator"] for name in ("bad", "broken")}
    lines = shown.out.splitlines()
    start = next(at for at, line in enumerate(lines) if " eval desk " in line)
    block = lines[start + 1 : start + 10]
    assert block[0] == "passed      good: graded 2 of 2, 100% passed"
    assert block[1].startswith("failed      bad: graded 1 of 1, 0% passed; failed 1: ")
    assert locators["bad"] in block[1]
    assert block[2] == (
        "incomplete  broken: graded 0 of 1, 0 passed; infrastructure 1: network: no route "
        f"({locators['broken']}), --mst-resume can help"
    )
    assert block[3] == "passed      posts: graded 1 of 1, 100% passed, evidence requested"
    run_id = run.plan["runId"]
    assert shown.has(
        "planned 6 = graded 5 + ungraded 0 + infrastructure 1 + unstarted 0",
        "pass rate 50% (2 of 4 complete cases; 1 incomplete left out), lowest evidence: requested",
        f"run {run_id} in .mst-results/desk/runs/{run_id}",
        f"finish it with: pytest --mst --mst-resume {run_id[-6:]}",
    )


def test_failures_say_what_a_reader_needs(shown: Session) -> None:
    failures = shown.out.partition("= FAILURES =")[2].partition("= eval ")[0]
    run = shown.run_of("desk")
    assert f"{run.trial('bad')['locator']} trial 0: failed" in failures
    assert "containsText failed" in failures
    assert "answer: no, " in failures
    assert f"{run.trial('posts-elsewhere')['locator']} trial 0: failed" in failures
    assert "desk.post" in failures
    assert "#all" in failures
    assert "\x1b" not in shown.text
    assert "\x07" not in shown.text
    assert "protocol.py" not in failures


def test_incomplete_cases_say_why_in_the_closing_block(shown: Session) -> None:
    assert "the test body raised KeyError: 'ok'" in shown.out
    assert "ungraded 2: " in shown.out


def test_quiet_and_verbose_are_fine(mixed: EvalProject) -> None:
    quiet = mixed.run("--mst", "-q")
    assert quiet.code == 1
    assert "planned 6 = graded 5" in quiet.out
    assert "..PxF!I.PxF??I." in quiet.out
    verbose = mixed.run("--mst", "-v")
    assert verbose.code == 1
    for line in (
        r"desk.eval.json::good::default .*CASE PASSED",
        r"desk.eval.json::bad::default .*CASE FAILED",
        r"desk.eval.json::broken::default .*CASE INCOMPLETE",
        r"test_evals.py::test_ordinary PASSED",
    ):
        assert re.search(line, verbose.out), line
    very_quiet = mixed.run("--mst", "-qq")
    assert very_quiet.code == 1


@pytest.mark.parametrize("processes", ["0", "2"])
def test_progress_without_a_terminal_is_a_line_now_and_then(
    project: EvalProject, bell: Bell, processes: str
) -> None:
    project.write(
        "conftest.py",
        """
        from pytest_mst.plugin import progress
        progress.LINE_EVERY_S = 0.2
        """,
    )
    project.eval(case("done", OK), case("hangs", call("stall"), OK), timeout=2500)
    session = project.run("--mst", "-n", processes)
    assert session.code == 10
    assert re.search(
        r"^mst: 1 of 2 attempts ended, 1 under way: @\w{8} hangs \[default\] trial 0 \d+ s$",
        session.out,
        re.MULTILINE,
    ), session.out


def test_progress_on_a_terminal_is_one_line_rewritten(project: EvalProject, bell: Bell) -> None:
    project.write(
        "conftest.py",
        """
        from pytest_mst.plugin import progress
        progress._QUIET_S = 0.2
        """,
    )
    project.eval(case("done", OK), case("hangs", call("stall"), OK), timeout=2500)
    reader, writer = pty.openpty()
    project.environ |= {"COLUMNS": "100", "TERM": "xterm"}
    with project.started("--mst", stdout=writer) as running:
        os.close(writer)
        seen = b""
        while select.select([reader], [], [], 30)[0]:
            try:
                seen += os.read(reader, 4096)
            except OSError:  # how Linux says that nobody writes any more
                break
        session = running.ended()
    os.close(reader)
    assert session.code == 10
    text = seen.decode()
    rewritten = re.findall(r"\rmst: 1 of 2 attempts ended, 1 under way[^\r\n]*", text)
    assert len(rewritten) >= 1, text
    assert "planned 2 = graded 1" in text


def test_long_sessions_do_not_print_the_whole_answer(project: EvalProject) -> None:
    project.eval(case("talks", answer("no " * 5000)))
    session = project.run("--mst")
    assert session.code == 1
    assert len(session.out) < 6000
