"""A run whose folder vanishes under way: it is said, and never taken for one that passed."""

from __future__ import annotations

import pytest

from tests.plugin.eval_project import EvalProject, answer, case


@pytest.mark.parametrize("gone", [".mst-results", "the run.json"])
@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_run_that_is_gone_at_the_end_is_incomplete(
    project: EvalProject, processes: str, gone: str
) -> None:
    project.eval(*(case(f"c-{number}", answer("ok")) for number in range(2)), servers={})
    project.write(
        "conftest.py",
        f"""
        import shutil
        from pathlib import Path

        def pytest_runtest_logfinish(nodeid):
            root = Path(__file__).parent / ".mst-results"
            if {gone == ".mst-results"}:
                shutil.rmtree(root, ignore_errors=True)
            for plan in root.glob("*/runs/*/run.json"):
                plan.unlink()
        """,
    )
    session = project.run("--mst", "-n", processes)
    assert session.code == 10, session.text
    assert "run.json" in session.text
    assert "was there and is gone" in session.text
    assert "INTERNALERROR" not in session.text
