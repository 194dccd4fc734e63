"""The markers: what they take, and that a wrong one is refused before anything runs."""

from __future__ import annotations

import pytest

from tests.plugin.eval_project import EvalProject, answer, call, case

OK = answer("ok")
CONFIG = 'config="desk.eval.json"'
WRONG: dict[str, tuple[str, str]] = {
    "unknown-key": (
        f"@pytest.mark.mst(inptu='x', {CONFIG})\ndef test_it(trial): pass",
        "does not take 'inptu'; did you mean 'input'?",
    ),
    "positional": (
        f"@pytest.mark.mst('x', {CONFIG})\ndef test_it(trial): pass",
        "takes no positional arguments, got ('x',)",
    ),
    "writes-alone": (
        "@pytest.mark.writes(server='desk', tool='post')\ndef test_it(): pass",
        "stands without `mst`",
    ),
    "trial-and-mst": (
        f"@pytest.mark.mst(input='x', {CONFIG})\ndef test_it(trial, mst): pass",
        "asks for both `trial` and `mst`",
    ),
    "no-input": (
        f"@pytest.mark.mst({CONFIG})\ndef test_it(trial): pass",
        "gives no input",
    ),
    "nothing-to-grade": (
        f"@pytest.mark.mst(input='x', {CONFIG})\ndef test_it(): pass",
        "nothing to grade",
    ),
    "no-config": (
        "@pytest.mark.mst(input='x')\ndef test_it(trial): pass",
        "names no eval config",
    ),
    "unknown-config": (
        "@pytest.mark.mst(input='x', config='nowhere/desk.eval.json')\ndef test_it(trial): pass",
        "names config 'nowhere/desk.eval.json', which is not there",
    ),
    "unknown-variant": (
        f"@pytest.mark.mst(input='x', {CONFIG}, variants=['tersee'])\ndef test_it(trial): pass",
        "'tersee'",
    ),
    "unknown-server": (
        f"@pytest.mark.mst(input='x', {CONFIG})\n"
        "@pytest.mark.writes(server='dask', tool='post')\ndef test_it(): pass",
        "'dask'",
    ),
    "writes-key": (
        f"@pytest.mark.mst(input='x', {CONFIG})\n"
        "@pytest.mark.writes(servr='desk', tool='post')\ndef test_it(): pass",
        "does not take 'servr'; did you mean 'server'?",
    ),
    "writes-without-tool": (
        f"@pytest.mark.mst(input='x', {CONFIG})\n"
        "@pytest.mark.writes(server='desk')\ndef test_it(): pass",
        "a tool's name is needed",
    ),
    "trials": (
        f"@pytest.mark.mst(input='x', {CONFIG}, trials=0)\ndef test_it(trial): pass",
        "trials=0 is not one; trials takes a whole number from 1",
    ),
    "threshold": (
        f"@pytest.mark.mst(input='x', {CONFIG}, pass_threshold=80)\ndef test_it(trial): pass",
        "pass_threshold takes a share, 0 to 1",
    ),
}


def test_every_wrong_marker_is_told_and_nothing_runs(project: EvalProject) -> None:
    project.eval(case("fine", call("find"), OK), variants=[{"name": "terse"}])
    for name, (source, _) in WRONG.items():
        project.test_file(source, name=f"test_{name.replace('-', '_')}.py")
    session = project.run("--mst", "--continue-on-collection-errors")
    assert session.code == 4
    for name, (_, said) in WRONG.items():
        assert session.count(said) >= 1, f"{name}: {session.text}"
        assert f"test_{name.replace('-', '_')}.py::test_it" in session.out
    assert "Traceback" not in session.text
    assert session.folders == ()
    assert project.desk_calls == []


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_wrong_marker_is_one_message_and_nothing_runs(
    project: EvalProject, processes: str
) -> None:
    project.eval(case("fine", call("find"), OK))
    project.test_file("def test_ordinary(): open('ran', 'w').close()\n", name="test_a.py")
    project.test_file(WRONG["unknown-key"][0])
    session = project.run("--mst", "-n", processes)
    assert session.code == 4
    assert session.count("did you mean 'input'?") == 1
    assert "Traceback" not in session.text
    assert "no eval case selected" not in session.out
    assert session.folders == ()
    assert project.desk_calls == []
    assert not (project.root / "ran").exists()


def test_a_wrong_config_that_a_marker_names_is_refused(project: EvalProject) -> None:
    project.write("configs/desk.eval.json", '{"name": "desk", "clint": "scripted"}')
    project.test_file(
        "@pytest.mark.mst(input='x', config='../configs/desk.eval.json')\ndef test_it(trial): pass",
        name="tests/test_evals.py",
    )
    session = project.run("--mst", "tests")
    assert session.code == 4
    assert 'unknown key "clint"' in session.text
    assert session.count("configs/desk.eval.json:1") == 1
    assert "Traceback" not in session.text


def test_a_config_that_only_collection_can_know_is_loaded_then(project: EvalProject) -> None:
    project.eval(case("fine", OK), clientOptions={"script": [call("find"), OK]})
    source = """
        @pytest.mark.mst(input="x", config="{name}" + ".eval.json")
        def test_it(trial): assert trial.call("find")
        """
    project.test_file(source.format(name="desk"))
    assert project.run("--mst", "test_evals.py").run.verdicts == {"test_it": "passed"}
    project.write("broken.eval.json", '{"name": "broken", "clint": "scripted"}')
    project.test_file(source.format(name="broken"))
    refused = project.run("--mst", "test_evals.py")
    assert refused.code == 4
    assert refused.count('unknown key "clint"') == 1
    assert "Traceback" not in refused.text


def test_writes_markers_say_what_is_expected(project: EvalProject) -> None:
    steps = [call("post", to="#a"), call("tag", name="x"), OK]
    project.eval(case("unused", OK), clientOptions={"script": steps})
    project.test_file(
        """
        CASE = pytest.mark.mst(input="x", config="desk.eval.json")
        POST = pytest.mark.writes(server="desk", tool="post")
        TAG = pytest.mark.writes(tool="tag", arguments={"name": "x"})

        @CASE
        @POST
        def test_one(): pass
        @CASE
        @POST
        @TAG
        def test_repeated(): pass
        @CASE
        @pytest.mark.writes(server="desk", tool="post", exclusive=True)
        def test_exclusive(): pass
        @CASE
        @pytest.mark.writes(server="desk", tool="post", order="strict")
        @TAG
        def test_in_order(): pass
        @CASE
        @TAG
        @pytest.mark.writes(server="desk", tool="post", order="strict")
        def test_out_of_order(): pass
        @CASE
        @pytest.mark.writes(tool="open_ticket", required=False)
        @POST
        def test_optional(): pass
        @CASE
        @pytest.mark.writes
        def test_bare(trial): assert trial.answer
        @CASE
        @pytest.mark.writes()
        def test_bare_and_called(trial): assert trial.answer
        """
    )
    session = project.run("--mst", "test_evals.py")
    run = session.run
    assert run.verdicts == {
        "test_one": "passed",
        "test_repeated": "passed",
        "test_exclusive": "failed",
        "test_in_order": "passed",
        "test_out_of_order": "failed",
        "test_optional": "passed",
        "test_bare": "passed",
        "test_bare_and_called": "passed",
    }
    assert run.case("test_bare")["writeCase"] is True
    assert run.trial("test_bare")["scores"]["writes"]["pass"] is True


def test_markers_overrule_the_file_and_options_overrule_markers(project: EvalProject) -> None:
    options = {"scripts": [[OK], [answer("no")]]}
    project.eval(case("unused", OK), servers={}, trials=3, clientOptions=options)
    project.test_file(
        """
        @pytest.mark.mst(input="x", config="desk.eval.json")
        def test_of_the_file(trial): assert trial.answer == "ok"
        @pytest.mark.mst(input="x", config="desk.eval.json", trials=2, pass_threshold=0.5)
        def test_of_the_marker(trial): assert trial.answer == "ok"
        """
    )
    run = project.run("--mst", "test_evals.py").run
    assert run.verdicts == {"test_of_the_file": "failed", "test_of_the_marker": "passed"}
    counts = {one["id"]: len(one["trials"]) for one in run.results["cases"]}
    assert counts == {"test_of_the_file": 3, "test_of_the_marker": 2}
    assert project.run("--mst", "--mst-trials", "1", "test_evals.py").run.ledger["planned"] == 2


def test_a_module_mark_holds_for_every_test(project: EvalProject) -> None:
    project.eval(
        case("unused", OK),
        servers={},
        clientOptions={"script": [OK]},
        variants=[{"name": "a"}, {"name": "b", "clientOptions": {"script": [answer("no")]}}],
    )
    project.test_file(
        """
        pytestmark = pytest.mark.mst(input="x", config="desk.eval.json")
        def test_both(trial): assert trial.answer == "ok"
        @pytest.mark.mst(input="x", config="desk.eval.json", variants=["a"])
        def test_one(trial): assert trial.answer == "ok"
        """
    )
    run = project.run("--mst", "test_evals.py").run
    assert run.verdicts == {
        "test_both::a": "passed",
        "test_both::b": "failed",
        "test_one::a": "passed",
    }
