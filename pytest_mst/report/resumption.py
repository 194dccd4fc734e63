"""What is said before a run is taken up again."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_mst.domain.resumption import Resumption, Step
from pytest_mst.report.text import shown

_SHOWN = 20
"""How many cases, servers and things to fix are named."""


def resumption_lines(eval_name: str, run_id: str, resumption: Resumption) -> Iterator[str]:
    """Yield the plan of a run that is taken up: what is kept and what is done, and what changed.

    Text from outside in it is safe to show.

    Args:
        eval_name: the eval's name.
        run_id: the run's id.
        resumption: what was decided.

    """
    counts = resumption.counts
    doing = "resuming" if resumption.kind == "resume" else "grading again"
    yield f"{doing} {shown(eval_name)}, run {shown(run_id)}"
    plan = (
        f"kept {counts[Step.KEEP]}, collect {counts[Step.COLLECT]}, grade {counts[Step.GRADE]}, "
        f"cannot be helped {resumption.cannot_help}"
    )
    fixes = [shown(one) for one in resumption.fixes[:_SHOWN]]
    more = len(resumption.fixes) - len(fixes)
    if more > 0:
        fixes.append(f"and {more} more")
    yield f"{plan}: {'; '.join(fixes)}" if fixes else plan
    for one in resumption.changed[:_SHOWN]:
        yield f"  {shown(one.case)} [{shown(one.variant)}]: {shown(one.what)}"
    if len(resumption.changed) > _SHOWN:
        yield f"  and {len(resumption.changed) - _SHOWN} more cases that changed"
    for tools in resumption.tools[:_SHOWN]:
        yield (
            f"  tools differ from those the run was started with: {shown(tools)}"
            " (--mst-strict-tools collects anew)"
        )
    if resumption.torn:
        what = "line or file" if resumption.torn == 1 else "lines and files"
        yield f"  {resumption.torn} {what} that cannot be read, as a killed process leaves them"
