"""Who acts in a Python case: a client of its own, the body itself, and on which servers."""

from __future__ import annotations

import pytest

from tests.plugin.eval_project import Bell, EvalProject, Session, StoredRun, answer, call, case

OK = answer("ok")
SLOW = {"sleep": 0.3}
BODY_RUNS = """
import os, subprocess, sys
from pytest_mst import InfrastructureError

CASE = pytest.mark.mst(input="Post it", config="desk.eval.json")

@CASE
async def test_runs(mst):
    assert (await mst.run()).answer == "ok"

@CASE
def test_runs_sync(mst, write_record):
    trial = mst.run_sync("Post it")
    assert trial.answer == "ok"
    write_record.one("post", arguments={"to": "#team"})

@CASE
async def test_fails(mst):
    assert (await mst.run()).answer == "something else"

@CASE
async def test_calls_fail(mst):
    pytest.fail((await mst.run()).answer)

@CASE
def test_proxy_calls_fail(dry_run_proxy):
    pytest.fail(dry_run_proxy.call("desk", "find")["content"][0]["text"])

@CASE
async def test_exits(mst):
    raise SystemExit((await mst.run()).answer)

@pytest.fixture
def broken_beside():
    raise OSError("no such place")

@CASE
async def test_fixture_breaks(mst, broken_beside):
    await mst.run()

@CASE
def test_proxy_fixture_breaks(dry_run_proxy, broken_beside):
    dry_run_proxy.call("desk", "find")

@CASE
async def test_breaks_before(mst):
    raise KeyError("early")

@CASE
async def test_breaks_after(mst):
    {}[(await mst.run()).answer]

@CASE
async def test_never_runs(mst):
    pass

@CASE
async def test_never_awaits(mst):
    mst.run()

@CASE
async def test_never_looks(mst):
    await mst.run()

@CASE
def test_returns_the_run(mst):
    return mst.run()

@CASE
async def test_says_infrastructure(mst):
    raise InfrastructureError("network", "no tunnel", retryable=True)

@CASE
async def test_says_infrastructure_after(mst):
    assert (await mst.run()).answer
    raise InfrastructureError("network", "no tunnel", retryable=True)

@CASE
async def test_skips(mst):
    pytest.skip("not here")

@CASE
def test_proxy(dry_run_proxy, write_record):
    told = dry_run_proxy.call("desk", "post", {"to": "#own"})
    assert "NOT executed" in told["content"][0]["text"]
    assert dry_run_proxy.call("desk", "find", {"a": 1})["content"][0]["text"] == 'find {"a": 1}'
    write_record.one("post", arguments={"to": "#own"})
    assert [one.tool for one in dry_run_proxy.calls] == ["post", "find"]

@CASE
def test_proxy_fails(dry_run_proxy, write_record):
    dry_run_proxy.call("desk", "find")
    write_record.one("post")

@CASE
def test_proxy_breaks(dry_run_proxy):
    dry_run_proxy.call("desk", "find")
    raise KeyError("my agent")

@CASE
def test_proxy_never_used(dry_run_proxy):
    pass

@CASE
async def test_transport(dry_run_proxy, write_record):
    from mcp import Client
    async with Client(dry_run_proxy.transport("desk")) as desk:
        await desk.call_tool("post", {"to": "#session"})
    write_record.one("post", arguments={"to": "#session"})

PROGRAM = '''
import asyncio, os
from mcp import Client

async def main():
    async with Client(os.environ["DESK"]) as desk:
        found = await desk.call_tool("find", {"to": "#program"})
        await desk.call_tool("post", {"to": "#program"})
        print(found.content[0].text)

asyncio.run(main())
'''

@CASE
def test_url(dry_run_proxy, write_record):
    env = {**os.environ, "DESK": dry_run_proxy.url("desk")}
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True)
    assert "#program" in run.stdout
    write_record.one("post", arguments={"to": "#program"})

@CASE
async def test_command(dry_run_proxy, write_record):
    from mcp import Client, StdioServerParameters, stdio_client
    desk = dry_run_proxy.command("desk")
    given = StdioServerParameters(command=desk.command, args=list(desk.args), env=dict(desk.env))
    with open(os.devnull, "w") as errlog:
        async with Client(stdio_client(given, errlog=errlog)) as session:
            await session.call_tool("post", {"to": "#relay"})
    write_record.one("post", arguments={"to": "#relay"})

@CASE
@pytest.mark.writes(server="desk", tool="post")
def test_record_beside_trial(trial, write_record, dry_run_proxy, mst_run):
    assert len(write_record) == 1
    assert [one.tool for one in dry_run_proxy.calls] == ["find", "post"]
    assert mst_run.eval_name == "test_evals" and mst_run.folder.name == mst_run.id
"""
BODY_VERDICTS = {
    "test_runs": "passed",
    "test_runs_sync": "passed",
    "test_fails": "failed",
    "test_calls_fail": "failed",
    "test_proxy_calls_fail": "failed",
    "test_exits": "incomplete",
    "test_fixture_breaks": "incomplete",
    "test_proxy_fixture_breaks": "incomplete",
    "test_breaks_before": "incomplete",
    "test_breaks_after": "incomplete",
    "test_never_runs": "incomplete",
    "test_never_awaits": "incomplete",
    "test_never_looks": "incomplete",
    "test_returns_the_run": "incomplete",
    "test_says_infrastructure": "incomplete",
    "test_says_infrastructure_after": "incomplete",
    "test_proxy": "passed",
    "test_proxy_fails": "failed",
    "test_proxy_breaks": "incomplete",
    "test_proxy_never_used": "incomplete",
    "test_transport": "passed",
    "test_url": "passed",
    "test_command": "passed",
    "test_record_beside_trial": "passed",
}


@pytest.fixture(scope="module")
def by_body(tmp_path_factory: pytest.TempPathFactory) -> tuple[EvalProject, Session]:
    project = EvalProject(tmp_path_factory.mktemp("body"))
    steps = [call("find"), call("post", to="#team"), OK]
    project.eval(case("unused", OK), clientOptions={"script": steps})
    project.test_file(BODY_RUNS)
    return project, project.run("--mst", "test_evals.py")


@pytest.fixture(scope="module")
def run(by_body: tuple[EvalProject, Session]) -> StoredRun:
    return by_body[1].run


def test_each_body_that_runs_its_client_comes_to_its_verdict(
    by_body: tuple[EvalProject, Session], run: StoredRun
) -> None:
    assert run.verdicts == BODY_VERDICTS
    assert "1 skipped" in by_body[1].out
    assert run.summary["cases"]["skipped"] == 1
    assert by_body[1].code == 1
    assert set(by_body[0].desk_calls) == {"find"}


@pytest.mark.parametrize(
    ("name", "broke", "said"),
    [
        ("test_fixture_breaks", "setup", "OSError: no such place before the client had ended"),
        ("test_proxy_fixture_breaks", "setup", "OSError: no such place"),
        ("test_breaks_before", "setup", "KeyError: 'early' before the client had ended"),
        ("test_never_awaits", "setup", "`mst.run(...)` was never awaited"),
        ("test_returns_the_run", "setup", "never awaited"),
        ("test_says_infrastructure", "network", "no tunnel"),
        ("test_proxy_breaks", "client-app", "KeyError: 'my agent'"),
    ],
)
def test_what_breaks_before_the_client_has_ended_is_infrastructure(
    run: StoredRun, name: str, broke: str, said: str
) -> None:
    ending = run.ending(name)
    assert (ending["kind"], ending["broke"]) == ("infrastructure", broke)
    assert said in ending["reason"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("test_exits", "the test body raised SystemExit: ok"),
        ("test_breaks_after", "the test body raised KeyError: 'ok'"),
        ("test_never_looks", "never looked at its trial"),
        ("test_says_infrastructure_after", "InfrastructureError"),
    ],
)
def test_what_breaks_after_it_leaves_the_trial_ungraded(
    run: StoredRun, name: str, said: str
) -> None:
    assert run.ending(name) == {"kind": "trial"}
    assert said in run.trial(name)["graderFailures"]["body"]


def test_inputs_continue_one_conversation(project: EvalProject) -> None:
    steps = [call("post", n=1), answer("one"), call("post", n=2), answer("two")]
    project.eval(case("unused", OK), clientOptions={"script": steps})
    project.test_file(
        """
        @pytest.mark.mst(config="desk.eval.json")
        @pytest.mark.writes(tool="post", arguments={"n": 2})
        async def test_talks(mst, write_record):
            assert (await mst.run("first")).answer == "one"
            assert len(write_record) == 1
            both = await mst.run("second")
            assert both.answer == "two"
            assert [event.arguments["n"] for event in both.calls("post")] == [1, 2]
        """
    )
    session = project.run("--mst", "test_evals.py")
    assert session.code == 0, session.text
    assert len(session.run.writes("test_talks")) == 2


def test_the_deadline_holds_for_a_body_that_runs_its_client(project: EvalProject) -> None:
    project.eval(
        case("unused", OK), clientOptions={"script": [{"sleep": 60}, OK]}, servers={}, timeout=300
    )
    project.test_file(
        """
        @pytest.mark.mst(input="x", config="desk.eval.json")
        async def test_hangs(mst): await mst.run()
        @pytest.mark.mst(input="x", config="desk.eval.json", timeout=200)
        def test_hangs_too(trial): assert 0
        """
    )
    run = project.run("--mst", "test_evals.py").run
    assert run.ending("test_hangs")["broke"] == "deadline"
    assert "0.3 s" in run.ending("test_hangs")["reason"]
    assert "0.2 s" in run.ending("test_hangs_too")["reason"]


def test_a_body_that_only_looks_at_what_its_calls_returned_is_graded(project: EvalProject) -> None:
    project.eval(case("unused", OK))
    project.test_file(
        """
        @pytest.mark.mst(config="desk.eval.json", input="x")
        def test_looks(dry_run_proxy):
            told = dry_run_proxy.call("desk", "find", {"for": "me"})
            assert "me" in told["content"][0]["text"]

        @pytest.mark.mst(config="desk.eval.json", input="x")
        def test_looks_wrong(dry_run_proxy):
            assert dry_run_proxy.call("desk", "find") is None
        """
    )
    session = project.run("--mst", "test_evals.py")
    assert session.run.verdicts == {"test_looks": "passed", "test_looks_wrong": "failed"}
    assert session.code == 1


def test_a_case_that_its_fixture_skips_gives_up_what_ran_ahead(
    project: EvalProject, bell: Bell
) -> None:
    project.eval(case("unused", OK), clientOptions={"script": [call("stall"), OK]})
    project.eval(case("unused", OK), name="slow", servers={}, clientOptions={"script": [SLOW, OK]})
    project.environ["HEARD"] = str(project.root / "heard")
    project.test_file(
        """
        import time
        from pathlib import Path

        @pytest.fixture
        def skips():
            deadline = time.monotonic() + 20
            while not Path(os.environ["HEARD"]).exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            pytest.skip("not today")

        @pytest.mark.mst(input="x", config="slow.eval.json")
        def test_before(trial): assert trial.answer == "ok"

        @pytest.mark.mst(input="x", config="desk.eval.json", trials=2)
        def test_skipped(skips, trial): assert 0

        @pytest.mark.mst(input="x", config="slow.eval.json", trials=4)
        def test_later(trial): assert trial.answer == "ok"
        """
    )
    with project.started("--mst", "--mst-concurrency", "3", "test_evals.py") as running:
        bell.hear(2)
        (project.root / "heard").touch()
        session = running.ended()
    assert session.code == 0, session.text
    run = session.run
    assert run.verdicts == {"test_before": "passed", "test_later": "passed"}
    assert run.ledger == {**dict.fromkeys(run.ledger, 0), "planned": 5, "graded": 5}
    assert run.summary["cases"]["skipped"] == 1
    mine = {run.trace_file("test_later", number)["locator"] for number in range(4)}
    steps = [line["kind"] for line in run.journal if line["locator"] in mine]
    assert len(steps) == 8
    together = [steps[:end].count("begun") - steps[:end].count("ended") for end in range(9)]
    assert max(together) > 1, steps
