"""Config, servers and client from a project's own fixtures, and what cases are then put to."""

from __future__ import annotations

import pytest

from tests.plugin.eval_project import EvalProject, answer, case

OK = answer("ok")
OWN_TARGETS = """
from pytest_mst import ClientRequest

@pytest.fixture(scope="module")
def mst_client():
    async def agent(request: ClientRequest) -> str:
        told = await request.tools.call_tool("desk", "find", {"for": request.input})
        return "agent: " + told["content"][0]["text"]
    return agent

@pytest.mark.mst(input="me", config="desk.eval.json", trials=2)
def test_my_client(trial):
    assert trial.answer == 'agent: find {"for": "me"}'
    assert trial.call("find").arguments == {"for": "me"}

class TestOfOneClass:
    @pytest.fixture
    def mst_client(self):
        return "scripted"

    @pytest.mark.mst(input="x", config="desk.eval.json")
    def test_a_named_client(self, trial):
        assert trial.answer == "ok"

class TestUnknown:
    @pytest.fixture
    def mst_client(self):
        return "scriptd"

    @pytest.mark.mst(input="x", config="desk.eval.json")
    def test_an_unknown_client(self, trial): assert 0

class TestOwnConfig:
    @pytest.fixture
    def mst_config(self):
        return {"name": "own", "cases": [], "client": "scripted",
                "clientOptions": {"script": [{"answer": "mine"}]}}
    @pytest.fixture
    def mst_client(self):
        return "scripted"

    @pytest.mark.mst(input="x")
    def test_a_config_of_its_own(self, trial):
        assert trial.answer == "mine"

class TestWrongConfig:
    @pytest.fixture
    def mst_config(self):
        return {"name": "own", "cases": [], "clint": "scripted"}

    @pytest.mark.mst(input="x")
    def test_a_wrong_config(self, trial): assert 0

class TestPathConfig:
    @pytest.fixture
    def mst_config(self):
        return "desk.eval.json"
    @pytest.fixture
    def mst_client(self):
        return "scripted"

    @pytest.mark.mst(input="x")
    def test_a_config_by_path(self, trial):
        assert trial.answer == "ok"

class TestOwnServer:
    @pytest.fixture
    def mst_servers(self):
        from mcp.server.mcpserver import MCPServer
        from mcp.types import ToolAnnotations
        shelf = MCPServer("shelf")
        self.put_calls = []
        @shelf.tool(annotations=ToolAnnotations(read_only_hint=True))
        def look(name: str) -> str: return f"found {name}"
        @shelf.tool()
        def put(name: str) -> str: raise AssertionError("reached the server")
        return {"shelf": shelf}
    @pytest.fixture
    def mst_client(self):
        async def agent(request):
            told = await request.tools.call_tool("shelf", "look", {"name": "x"})
            await request.tools.call_tool("shelf", "put", {"name": "y"})
            return told["content"][0]["text"]
        return agent

    @pytest.mark.mst(input="x", config="desk.eval.json")
    @pytest.mark.writes(server="shelf", tool="put", arguments={"name": "y"})
    def test_a_live_server_object(self, trial):
        assert trial.answer == "found x"
"""


def test_fixtures_say_what_a_case_is_put_to(project: EvalProject) -> None:
    project.eval(case("unused", OK), clientOptions={"script": [OK]})
    project.test_file(OWN_TARGETS)
    session = project.run("--mst", "test_evals.py")
    run = session.run
    names = {name.rpartition("::")[2]: verdict for name, verdict in run.verdicts.items()}
    assert names == {
        "test_my_client": "passed",
        "test_a_named_client": "passed",
        "test_an_unknown_client": "incomplete",
        "test_a_config_of_its_own": "passed",
        "test_a_wrong_config": "incomplete",
        "test_a_config_by_path": "passed",
        "test_a_live_server_object": "passed",
    }
    unknown = run.trial("TestUnknown::test_an_unknown_client")["ending"]
    assert (unknown["broke"], unknown["retryable"]) == ("setup", False)
    assert "'scriptd'" in unknown["reason"]
    wrong = run.trial("TestWrongConfig::test_a_wrong_config")["ending"]
    assert "clint" in wrong["reason"]
    assert run.case("TestOwnServer::test_a_live_server_object")["evidence"] == "requested"


def test_conftest_fixtures_of_wider_scope_let_attempts_run_ahead(project: EvalProject) -> None:
    project.eval(case("unused", OK), clientOptions={"script": [OK]}, servers={})
    project.write(
        "conftest.py",
        """
        import anyio
        import pytest

        together = 0
        most = 0

        @pytest.fixture(scope="session")
        def mst_client():
            async def agent(request):
                global together, most
                together += 1
                most = max(most, together)
                await anyio.sleep(0.05)
                together -= 1
                return str(most)
            return agent
        """,
    )
    project.test_file(
        """
        @pytest.mark.mst(input="x", config="desk.eval.json", trials=2)
        @pytest.mark.parametrize("n", range(6))
        def test_it(trial, n):
            assert int(trial.answer) > (0 if n < 4 else 2)
        """
    )
    session = project.run("--mst", "test_evals.py", "--mst-concurrency", "4")
    assert session.code == 0, session.text


def test_a_parametrized_client_of_wider_scope_acts_in_its_own_items(project: EvalProject) -> None:
    project.eval(case("unused", OK), servers={})
    project.test_file(
        """
        @pytest.fixture(scope="session", params=["one", "two"])
        def mst_client(request):
            name = request.param
            async def agent(_): return name
            return agent

        @pytest.mark.mst(input="x", config="desk.eval.json", trials=2)
        @pytest.mark.parametrize("n", range(2))
        def test_it(trial, n, request):
            assert trial.answer == request.node.callspec.params["mst_client"]
        """
    )
    session = project.run("--mst", "test_evals.py")
    assert session.code == 0, session.text
    assert len(session.run.verdicts) == 4


def test_a_case_graded_by_its_markers_alone_has_the_client_of_its_fixtures(
    project: EvalProject,
) -> None:
    project.eval(case("unused", answer("no")), servers={})
    project.test_file(
        """
        @pytest.fixture(scope="module")
        def mst_client():
            async def agent(request): return "mine"
            return agent

        CASE = pytest.mark.mst(input="x", config="desk.eval.json")

        @CASE
        @pytest.mark.writes
        def test_by_markers(): pass
        """
    )
    run = project.run("--mst", "test_evals.py").run
    assert run.trace_file("test_by_markers")["trace"]["answer"] == "mine"


def test_what_loops_and_frameworks_raise_takes_no_other_attempt_along(
    project: EvalProject,
) -> None:
    project.eval(case("unused", OK), servers={})
    project.test_file(
        """
        import asyncio

        RAISED = {
            "cancelled": asyncio.CancelledError("mine"),
            "exit": SystemExit("mine"),
            "interrupt": KeyboardInterrupt("mine"),
            "fail": pytest.fail.Exception("mine"),
            "skip": pytest.skip.Exception("mine"),
        }

        @pytest.fixture(scope="session")
        def mst_client():
            async def agent(request):
                await asyncio.sleep(0)
                if request.input in RAISED:
                    raise RAISED[request.input]
                return "ok"
            return agent

        def mst_case(text):
            return pytest.mark.mst(input=text, config="desk.eval.json", trials=2, timeout=5000)

        for name in RAISED:
            def test(trial): assert 0
            globals()[f"test_{name}"] = mst_case(name)(test)
        del test

        @mst_case("fine")
        def test_fine(trial): assert trial.answer == "ok"

        @mst_case("cancelled")
        async def test_cancelled_in_a_body(mst):
            await mst.run()
        """
    )
    session = project.run("--mst", "--mst-concurrency", "2", "test_evals.py")
    assert session.code == 10, session.text
    run = session.run
    assert [name for name, word in run.verdicts.items() if word == "passed"] == ["test_fine"]
    broken = [name for name, word in run.verdicts.items() if word == "incomplete"]
    assert len(broken) == 6
    for name in broken:
        ending = run.ending(name, 1)
        assert (ending["broke"], ending["retryable"]) == ("client-app", True)
        assert "mine" in ending["reason"]


def test_leaving_pytest_from_a_body_cuts_short_what_is_under_way(project: EvalProject) -> None:
    slow = {"script": [{"sleep": 60}, OK]}
    project.eval(case("unused", OK), servers={}, clientOptions={"script": [OK]})
    project.eval(case("unused", OK), servers={}, clientOptions=slow, name="slow")
    project.test_file(
        """
        @pytest.mark.mst(input="x", config="desk.eval.json")
        def test_leaves(trial): pytest.exit("enough", returncode=7)
        @pytest.mark.mst(input="x", config="slow.eval.json")
        def test_slow(trial): assert 0
        """
    )
    session = project.run("--mst", "test_evals.py", within_s=40)
    assert session.code == 7
    assert session.run.ending("test_slow")["broke"] == "collection"
    assert session.run.trial("test_leaves")["verdict"] == "ungraded"


@pytest.mark.lets_writes_through
def test_a_shared_client_meets_the_servers_of_the_config_that_each_function_names(
    project: EvalProject,
) -> None:
    """What one of them lets through is stopped for the other."""
    project.eval(name="open", writes={"desk": "unguarded"}, cases=None)
    project.eval(name="closed", cases=None)
    project.test_file(
        """
        from pytest_mst import ScriptedClient

        @pytest.fixture(scope="module")
        def mst_client():
            return ScriptedClient([{"call": {"server": "desk", "tool": "post"}}, {"answer": "ok"}])

        @pytest.mark.mst(input="x", config="open.eval.json", trials=2)
        def test_open(trial):
            assert trial.writes.one("post").mode == "unguarded"

        @pytest.mark.mst(input="x", config="closed.eval.json", trials=2)
        def test_closed(trial):
            assert trial.writes.one("post").mode == "planned"
        """
    )
    session = project.run("--mst", "test_evals.py")
    assert session.code == 0, session.text
    assert session.run.verdicts == {"test_open": "passed", "test_closed": "passed"}
