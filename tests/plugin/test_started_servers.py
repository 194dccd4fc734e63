"""HTTP servers that the run starts: once for all that need them, and gone with the session."""

from __future__ import annotations

import json
import re
import signal
import socket

import pytest

from tests.plugin.booth import Started, booth, free_port, wait_until
from tests.plugin.eval_project import EvalProject, Json, answer, call, case, desk

OK = answer("ok")


@pytest.fixture
def started(project: EvalProject) -> Started:
    return Started(project)


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_server_is_started_once_and_gone_with_its_child(
    project: EvalProject, started: Started, processes: str
) -> None:
    port = free_port()
    cases = [
        case(
            f"posts-{number}",
            call("find", server="booth", name="it"),
            call("post", server="booth", text="hello"),
            OK,
            expected={"writes": [{"server": "booth", "tool": "post"}]},
        )
        for number in range(4)
    ]
    project.eval(
        *cases,
        servers={"booth": booth(port)},
        variants=[{"name": "one"}, {"name": "two"}],
    )
    session = project.run("--mst", "-n", processes)
    assert session.code == 0, session.text
    assert started.times == 1
    assert started.all_gone()
    assert set(started.calls) == {"find"}  # and no write has reached it
    run = session.run
    assert run.plan["variants"][0]["servers"][0]["writeMode"] == "planned"
    for variant in ("one", "two"):
        log = run.folder / "logs" / variant / "booth.log"
        assert log.read_text().startswith("open\n")
        assert log.stat().st_mode & 0o777 == 0o600


def test_python_cases_find_it_too(project: EvalProject, started: Started) -> None:
    project.test_file(
        """
        @pytest.mark.mst(input="x", config="evals/booth.eval.json", trials=2)
        def test_finds(trial):
            assert trial.answer == "ok"
        """
    )
    script = {"script": [call("find", server="booth"), OK]}
    project.eval(
        servers={"booth": booth(free_port())},
        file="evals/booth.eval.json",
        clientOptions=script,
        cases=None,
    )
    session = project.run("--mst", "-n2", "test_evals.py")
    assert session.code == 0, session.text
    assert (started.times, started.calls) == (1, ["find", "find"])
    assert started.all_gone()
    assert (session.run.folder / "logs" / "default" / "booth.log").exists()


def test_looking_at_the_plan_starts_it_and_ends_it(project: EvalProject, started: Started) -> None:
    project.eval(case("finds", OK), servers={"booth": booth(free_port())})
    session = project.run("--mst", "--collect-only")
    assert session.code == 0
    assert "booth planned (4 reads, 0 declared writes, 1 held for want of a hint)" in session.out
    assert started.times == 1
    assert started.all_gone()
    assert not (project.root / ".mst-results").exists()


@pytest.mark.parametrize(
    ("how", "processes"),
    [("SIGINT", "2"), ("SIGTERM", "0"), ("SIGKILL", "0"), ("SIGKILL", "2")],
)
def test_nothing_is_left_of_a_session_that_was_ended(
    project: EvalProject, started: Started, how: str, processes: str
) -> None:
    project.eval(
        case("waits", call("find", server="booth"), {"sleep": 60}, OK),
        servers={"booth": booth(free_port())},
    )
    with project.started("--mst", "-n", processes) as running:
        started.wait_for_call("find")
        running.process.send_signal(signal.Signals[how])
        session = running.ended(within_s=30)
        assert started.all_gone()
    assert session.code == (-9 if how == "SIGKILL" else 2)
    assert "INTERNALERROR" not in session.text


def test_ctrl_c_before_it_is_ready_leaves_nothing(project: EvalProject, started: Started) -> None:
    server = booth(free_port(), "deaf", start={"timeoutMs": 600_000})
    project.eval(case("finds", OK), servers={"booth": server})
    with project.started("--mst") as running:
        wait_until(lambda: started.pids)
        running.interrupt()
        session = running.ended(within_s=30)
    assert session.code == 2, session.text
    assert started.all_gone()


@pytest.mark.parametrize(
    ("words", "start", "said"),
    [
        (["exit"], {}, "exited with status 3 before it was ready; it said: no booth today"),
        (["deaf"], {"timeoutMs": 700}, "was not ready at http://127.0.0.1:"),
    ],
)
def test_one_that_cannot_be_used_is_a_setup_failure_of_its_variants(
    project: EvalProject,
    started: Started,
    words: list[str],
    start: Json,
    said: str,
) -> None:
    project.eval(
        case("finds", OK),
        servers={"booth": booth(free_port(), *words, start=start), "desk": desk()},
        variants=[{"name": "with"}, {"name": "without", "servers": ["desk"]}],
    )
    session = project.run("--mst")
    assert session.code == 10, session.text
    run = session.run
    assert run.verdicts == {"finds::with": "incomplete", "finds::without": "passed"}
    ending = run.ending("finds", variant="with")
    assert (ending["broke"], ending["retryable"]) == ("setup", True)
    assert (ending["scope"], "accepted" in ending) == ("variant", False)
    assert said in ending["reason"]
    assert said in session.out
    assert not started.pids or started.all_gone()  # it may not have come to say a word


def test_a_run_is_finished_once_the_program_can_be_started(
    project: EvalProject, started: Started
) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        project.eval(
            case("finds", call("find", server="booth"), OK),
            servers={"booth": booth(port, start={"timeoutMs": 4000})},
        )
        session = project.run("--mst")
        assert session.code == 10, session.text
    resumed = project.run("--mst", "--mst-resume")
    assert resumed.code == 0, resumed.text
    assert started.calls == ["find"]
    assert started.all_gone()


def test_what_answers_there_already_is_not_written_to(
    project: EvalProject, started: Started
) -> None:
    port = free_port()
    first = {"booth": booth(port)}
    project.eval(
        case("waits", call("find", server="booth"), {"sleep": 60}, OK),
        name="first",
        servers=first,
    )
    project.eval(
        case("posts", call("post", server="booth"), OK),
        name="second",
        servers=first,
        writes={"booth": "unguarded"},
    )
    with project.started("--mst", "first.eval.json") as running:
        started.wait_for_call("find")
        session = project.run("--mst", "second.eval.json")
        assert running.process.poll() is None
    assert session.code == 10, session.text
    ending = session.run_of("second").ending("posts")
    assert f"something else answers at http://127.0.0.1:{port} already" in ending["reason"]
    assert started.calls == ["find"]
    assert started.all_gone()


def test_evals_that_start_the_same_program_share_it(project: EvalProject, started: Started) -> None:
    server = booth(free_port())
    for name in ("first", "second"):
        project.eval(
            case("finds", call("find", server="booth"), OK), name=name, servers={"booth": server}
        )
    session = project.run("--mst")
    assert session.code == 0, session.text
    assert (started.times, started.calls) == (1, ["find", "find"])


def test_programs_that_cannot_be_told_apart_are_refused(
    project: EvalProject, started: Started
) -> None:
    port = free_port()
    project.eval(case("finds", OK), servers={"one": booth(port), "two": booth(port, "more")})
    session = project.run("--mst")
    assert session.code == 4
    assert re.search(
        r"desk\.eval\.json:\d+.*servers 'one' and 'two' start different programs that are to "
        r"answer at the same address; give each",
        session.err,
    )
    assert started.times == 0


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_fixture_cannot_have_a_program_started(
    project: EvalProject, started: Started, processes: str
) -> None:
    project.eval(case("unused", OK), clientOptions={"script": [OK]})
    project.test_file(
        f"""
        @pytest.fixture(scope="module")
        def mst_servers():
            return {{"booth": {booth(free_port())!r}}}

        @pytest.mark.mst(input="x", config="desk.eval.json")
        def test_it(trial):
            assert trial.answer
        """
    )
    session = project.run("--mst", "-n", processes, "test_evals.py")
    assert session.code == 10, session.text
    ending = session.run.ending("test_it")
    assert (ending["broke"], ending["retryable"]) == ("setup", False)
    assert "the program of server 'booth' was not started" in ending["reason"]
    assert started.times == 0


def test_a_program_that_dies_is_gone_for_calls_and_started_again_by_the_next_session(
    project: EvalProject, started: Started
) -> None:
    project.eval(
        case("asks-it-to-end", call("close_down", server="booth"), OK),
        case("comes-later", call("find", server="booth"), OK),
        servers={"booth": booth(free_port())},
        concurrency=1,
    )
    session = project.run("--mst", "--mst-concurrency", "1")
    run = session.run
    ending = run.ending("asks-it-to-end")
    assert ending["kind"] == "trial"
    assert run.trace_file("asks-it-to-end")["trace"]["events"][0]["isError"] is True
    later = run.ending("comes-later")
    assert later["kind"] == "infrastructure" or "cannot be reached" in json.dumps(
        run.trace_file("comes-later")["trace"]
    )
    assert started.times == 1
    assert started.all_gone()
    log = (run.folder / "logs" / "default" / "booth.log").read_text()
    assert "[start] exited with status 7; the run goes on without it" in log
