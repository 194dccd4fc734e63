"""What makes two attempts the same: what the client was given, and what grades it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_mst.attempt.job import Target
from pytest_mst.domain.case import Case
from pytest_mst.domain.identity import Identity, part_hash
from pytest_mst.domain.json_value import content_hash


def identity_of(
    case: Case,
    target: Target,
    *,
    judges: Sequence[object] = (),
    judge_sources: Sequence[str] = (),
    declared_writes: bool = False,
    collected_by: str | None = None,
    body: str | None = None,
    listed_by: Target | None = None,
) -> Identity:
    """Return the identity of the attempts at a case.

    Neither the number of trials, thresholds, tags, the order of cases nor deadlines are in it,
    nor any secret: server definitions keep references to the environment as they are written.

    Args:
        case: the case.
        target: what it is put to.
        judges: the judges of the eval or the variant.
        judge_sources: Python source of judges that are functions.
        declared_writes: a Python case marked as making writes.
        collected_by: Python source that has a say in what the client does: of the fixtures that
            make the target, of a body that runs the client itself.
        body: Python source that grades: of a test body.
        listed_by: whose tools are those of the target, where that is not made yet.

    """
    parts: dict[str, object] = {
        "case": case.id,
        "variant": target.variant,
        "input": target.input_template.replace("{{input}}", case.input),
        "client": target.client.name,
        "model": target.model_for(case),
        "options": target.options_for(case),
        "servers": target.definitions_key,
    }
    put_to = target.for_case(case)
    if put_to.live is not None:
        reads = [[one.server, one.tool, one.arguments] for one in case.expected.outcome or ()]
        parts["steps around a live attempt"] = [put_to.live.key, reads]
    if collected_by is not None:
        parts["source of the client"] = collected_by
    grading = {
        "expected": _dumped(case.expected),
        "assertions": _dumped(case.assertions),
        "judges": [list(case.judges), list(judges), case.judge_reps],
        "declaredWrites": declared_writes,
        "body": body,
    }
    if any(judge_sources):
        grading["source of judges"] = list(judge_sources)
    if case.expected.outcome:
        checks = case.expected.outcome  # as they are written: a null in them is a value
        grading["outcome"] = [one.model_dump(by_alias=True, exclude_unset=True) for one in checks]
    return Identity(
        parts={name: part_hash(value) for name, value in parts.items()},
        grading_key=content_hash(grading),
        tools=(listed_by or target).tools_key,
    )


def _dumped(model: Any) -> object:
    return model.model_dump(by_alias=True, exclude_defaults=True)
