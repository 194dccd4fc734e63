"""Clients and judges that a conftest or a plugin registers, as a user has them."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from tests.plugin.eval_project import EvalProject, answer, case, says

AGENT = """
    async def clerk(request):
        await request.tools.call_tool("desk", "post", {"channel": "#team"})
        return "ok, posted"

    def polite(trial):
        return "ok" in trial.answer

    def pytest_mst_register(registrar):
        registrar.client("clerk", clerk)
        registrar.judge("polite", polite)
"""


@pytest.fixture
def project(project: EvalProject) -> EvalProject:
    project.write("conftest.py", AGENT)
    return project


def asked(case_id: str = "c") -> dict[str, object]:
    return {"id": case_id, "input": "Post it", "assertions": says("ok")}


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_an_eval_names_a_client_and_a_judge_that_a_conftest_registers(
    project: EvalProject, workers: tuple[str, ...]
) -> None:
    project.eval(asked(), client="clerk", judges=[{"type": "polite"}])
    session = project.run("--mst", *workers)
    assert session.code == 0, session.text
    trial = session.run.trial("c")
    assert trial["scores"]["polite"]["pass"] is True
    trace = session.run.trace_file("c")["trace"]
    assert (trace["evidence"], trace["answer"]) == ("observed", "ok, posted")
    assert [(one["server"], one["name"]) for one in trace["events"]] == [("desk", "post")]
    assert [one["tool"] for one in session.run.writes("c")] == ["post"]


def test_the_option_and_the_fixture_know_registered_clients_by_name(project: EvalProject) -> None:
    project.eval(asked())
    session = project.run("--mst", "--mst-client", "clerk", "desk.eval.json")
    assert session.code == 0, session.text
    assert session.run.trace_file("c")["trace"]["answer"] == "ok, posted"
    project.test_file(
        """
        @pytest.fixture
        def mst_client():
            return "clerk"

        @pytest.mark.mst(input="Post it", config="desk.eval.json")
        def test_it(trial):
            assert trial.answer == "ok, posted"
        """
    )
    again = project.run("--mst", "test_evals.py")
    assert again.code == 0, again.text


def test_a_conftest_that_is_met_late_registers_for_its_test_functions(project: EvalProject) -> None:
    project.write("conftest.py", "")
    project.eval(case("c", answer("ok")))
    project.write("deep/below/conftest.py", AGENT)
    project.write(
        "deep/below/test_late.py",
        """
        import pytest

        @pytest.fixture
        def mst_client():
            return "clerk"

        @pytest.mark.mst(input="Post it", config="../../desk.eval.json")
        def test_it(trial):
            assert trial.answer == "ok, posted"
        """,
    )
    session = project.run("--mst", ".")
    assert session.code == 0, session.text


def test_a_late_conftest_that_registers_a_taken_name_is_told(project: EvalProject) -> None:
    late = "def pytest_mst_register(registrar):\n    registrar.judge('polite', print)\n"
    project.write("deep/below/conftest.py", late)
    project.write("deep/below/test_late.py", "def test_plain():\n    pass\n")
    session = project.run("--mst", ".")
    assert session.code != 0
    assert "pytest_mst_register: judge 'polite' is registered twice" in session.text
    assert "INTERNALERROR" not in session.text


def test_a_name_that_nobody_registered_is_told_with_all_there_are(project: EvalProject) -> None:
    project.eval(asked(), client="clark")
    session = project.run("--mst")
    assert session.code == 4
    assert "desk.eval.json:" in session.text
    assert "there is no 'clark'" in session.text
    assert "claude-code, clerk, " in session.text
    assert project.run("--mst", "--mst-client", "nobody").code == 4


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("client('mst', clerk)", "client 'mst' is built in: conftest.clerk cannot have that name"),
        (
            "client('clerk', polite_agent)",
            "client 'clerk' is registered twice: as conftest.clerk, and as conftest.polite_agent",
        ),
        ("client('', clerk)", "client '' has no name"),
        ("client('other', polite)", "client 'other' pytest_mst_register gives function; valid:"),
        ("client('other', Mine())", "client 'other' is an object whose own name is 'mine'"),
        ("judge('rubric', polite)", "judge 'rubric' is built in"),
        ("judge('polite', polite)", "judge 'polite' is registered twice"),
        ("judge('other', 3)", "judge 'other' is int; valid: a function"),
    ],
)
def test_what_cannot_be_registered_is_one_message_before_anything_starts(
    project: EvalProject, line: str, said: str
) -> None:
    source = textwrap.dedent(AGENT) + textwrap.dedent(
        f"""
        async def polite_agent(request):
            return "ok"

        class Mine:
            name = "mine"
            async def run(self, request):
                pass

        def pytest_mst_register(registrar):
            registrar.client("clerk", clerk)
            registrar.judge("polite", polite)
            registrar.{line}
        """
    )
    project.write("conftest.py", source)
    project.eval(asked(), client="clerk")
    session = project.run("--mst")
    assert session.code == 4, session.text
    assert f"pytest_mst_register: {said}" in session.text
    assert "Traceback" not in session.text
    assert session.folders == ()


def test_nothing_is_registered_without_mst(project: EvalProject) -> None:
    project.write("conftest.py", "def pytest_mst_register(registrar):\n    raise SystemExit(9)\n")
    project.write("test_plain.py", "def test_plain():\n    pass\n")
    assert project.run("test_plain.py").code == 0


def test_two_sessions_of_one_process_know_nothing_of_each_other(project: EvalProject) -> None:
    project.write("conftest.py", "")
    project.write("one/conftest.py", AGENT)
    project.eval(asked(), client="clerk", file="one/desk.eval.json", name="one")
    project.eval(asked(), client="clerk", file="two/desk.eval.json", name="two")
    project.write(
        "both.py",
        """
        import pytest

        def run(folder):
            return int(pytest.main(["-p", "mst", "--mst", folder]))

        print("CODES", run("one"), run("two"), run("one"))
        """,
    )
    done = subprocess.run(
        [sys.executable, "both.py"],
        cwd=project.root,
        env=project.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "CODES 0 4 0" in done.stdout, done.stdout + done.stderr
