"""Addresses behind the proxy let in who knows them: neither reports nor stored files say them."""

from __future__ import annotations

from tests.plugin.eval_project import EvalProject, answer, case

BODY = """
import asyncio, os, pathlib, subprocess, sys
from mcp import Client

@pytest.mark.mst(input="Post it", config="desk.eval.json")
def test_shows_all_it_has(dry_run_proxy):
    url = dry_run_proxy.url("desk")
    command = dry_run_proxy.command("desk")
    env = {**command.env, "DESK": url}
    tokens = pathlib.Path(os.environ["TOKENS_FILE"])
    tokens.write_text("\\n".join([url.split("/")[4], command.env["PYTEST_MST_RELAY_TOKEN"]]))
    with pytest.raises(KeyError):
        dry_run_proxy.url("nobody")
    program = [sys.executable, "-c", "import os; assert os.environ['DESK'].endswith('/mcp')"]
    subprocess.run(program, env={**os.environ, **env}, check=True)
    print(dry_run_proxy, [url], command)
    assert (command, env) == (url, None)
"""

CLIENT = """
import json, os, sys
import anyio

PROGRAM = '''
import asyncio, json, os
from mcp import Client, StdioServerParameters, stdio_client

async def main():
    command, args, env = json.loads(os.environ["RELAY"])
    relay = stdio_client(StdioServerParameters(command=command, args=args, env=env))
    for way_in in (os.environ["DESK"], relay):
        async with Client(way_in) as desk:
            await desk.call_tool("post", {"to": "#program"})

asyncio.run(main())
'''

@pytest.fixture(scope="module")
def mst_client():
    async def starts_a_program(request):
        relay = await request.session.command("desk")
        env = {
            **os.environ,
            "DESK": await request.session.url("desk"),
            "RELAY": json.dumps([relay.command, relay.args, dict(relay.env)]),
        }
        await anyio.run_process([sys.executable, "-c", PROGRAM], env=env)
        return "posted"

    return starts_a_program

@pytest.mark.mst(input="Post it", config="desk.eval.json", trials=2)
def test_program(trial):
    assert trial.answer == "posted"
    assert len(trial.writes) == 2
"""


def test_a_client_can_be_a_program_that_is_told_where_its_servers_are(project: EvalProject) -> None:
    project.eval(case("unused", answer("ok")))
    project.test_file(CLIENT)
    session = project.run("--mst", "test_evals.py")
    for trial in (0, 1):
        writes = session.run.writes("test_program", trial)
        assert [one["arguments"] for one in writes] == [{"to": "#program"}] * 2


def test_what_a_failing_body_shows_does_not_tell_how_to_get_in(project: EvalProject) -> None:
    tokens_file = project.root.parent / "tokens"
    project.environ["TOKENS_FILE"] = str(tokens_file)
    project.eval(case("unused", answer("ok")))
    project.test_file(BODY)
    report = project.root / "report.xml"
    flags = ["--showlocals", "-vv", "--log-level=DEBUG", f"--junitxml={report}"]
    session = project.run("--mst", "test_evals.py", *flags)
    assert session.run.verdicts == {"test_shows_all_it_has": "failed"}
    assert "[token]" in session.out
    told = [session.out, report.read_text()]
    told += [data.decode() for data, _ in project.stored().values()]
    for token in tokens_file.read_text().splitlines():
        assert len(token) >= 43
        assert not any(token in one for one in told)
