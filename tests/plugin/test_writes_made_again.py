"""A write that an attempt made before it broke, and the attempt that took its place makes again."""

from __future__ import annotations

from pathlib import Path

from tests.plugin.eval_project import EvalProject

CLIENT = """
    from pathlib import Path

    import pytest
    from pytest_mst import InfrastructureError


    @pytest.fixture
    def mst_client():
        async def agent(request):
            await request.tools.call_tool("desk", "post", {"text": "once"})
            if not Path("mended").exists():
                raise InfrastructureError("network", "the line is dead", retryable=True)
            return "ok"

        return agent


    @pytest.mark.writes(tool="post", exclusive=True)
    @pytest.mark.mst(input="post it", config="desk.json")
    def test_posts(trial):
        assert trial.answer == "ok"
"""


def test_only_the_write_of_the_attempt_that_counts_is_held_against_what_is_expected(
    tmp_path: Path,
) -> None:
    project = EvalProject(tmp_path)
    project.eval(file="desk.json")
    project.write("test_evals.py", CLIENT)
    broken = project.run("--mst")
    assert broken.code == 10, broken.text
    assert broken.run.ending("test_posts")["broke"] == "network"
    assert len(broken.run.writes("test_posts")) == 1
    project.write("mended", "")
    again = project.run("--mst", "--mst-resume", broken.folders[0].name)
    assert again.code == 0, again.text
    [entry] = broken.run.writes("test_posts")
    assert entry["arguments"] == {"text": "once"}
    [replaced] = broken.folders[0].glob("superseded/*/writes/default/test_posts/0.jsonl")
    assert replaced.read_text().count("\n") == 1
    assert project.desk_calls == []
