"""Values of `${NAME}`: neither reports nor stored files say them."""

from __future__ import annotations

import pytest

from tests.plugin.eval_project import EvalProject, answer, call, case, desk

SECRET = "hush-4711-do-not-tell"


@pytest.mark.parametrize("processes", ["0", "2"])
def test_what_came_from_the_environment_is_told_nowhere(
    project: EvalProject, processes: str
) -> None:
    project.environ["DESK_TOKEN"] = SECRET
    server = desk()
    server["env"]["DESK_TOKEN"] = "${DESK_TOKEN}"
    project.eval(
        case("told", call("find", key=SECRET), answer(f"no, it is {SECRET}")),
        servers={"desk": server},
        clientOptions={"script": [answer(f"it is {SECRET}")]},
    )
    project.test_file(
        """
        @pytest.mark.mst(input="x", config="desk.eval.json")
        def test_asserts(trial):
            print("printed", trial.answer)
            assert trial.answer == "something else"

        @pytest.mark.mst(input="x", config="desk.eval.json")
        async def test_runs(mst):
            answer = (await mst.run()).answer
            raise KeyError(answer)
        """
    )
    report = project.root / "report.xml"
    session = project.run("--mst", "-n", processes, f"--junitxml={report}", "-rA")
    assert session.code in (1, 10), session.text
    assert "something else" in session.out
    places = {"the terminal": session.text, "the report": report.read_text()}
    places |= {
        str(path): path.read_text()
        for path in (project.root / ".mst-results").rglob("*")
        if path.is_file()
    }
    assert any("traces" in name for name in places)
    assert [name for name, text in places.items() if SECRET in text] == []
