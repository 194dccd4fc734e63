"""What taking a run up again comes to, as it is stored."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.domain.plan import RunPlan, plan_from_json
from pytest_mst.domain.resumption import (
    ChangedCase,
    Resumption,
    Step,
    resumptions_from_json,
)
from tests.store.records import plan_of, texts

COUNTS = st.fixed_dictionaries({step: st.integers(0, 10**6) for step in Step})
RESUMPTIONS = st.builds(
    Resumption,
    at=texts,
    kind=st.sampled_from(["resume", "grade"]),
    counts=COUNTS,
    cannot_help=st.integers(0, 99),
    fixes=st.lists(texts, max_size=2).map(tuple),
    changed=st.lists(st.builds(ChangedCase, texts, texts, texts), max_size=2).map(tuple),
    tools=st.lists(texts, max_size=2).map(tuple),
    torn=st.integers(0, 99),
)


def read_back(document: object) -> Any:
    return json.loads(json.dumps(document))


@given(st.lists(RESUMPTIONS, max_size=2).map(tuple))
def test_resumptions_are_read_back_as_they_were_written(given: tuple[Resumption, ...]) -> None:
    stored = read_back({"resumptions": [one.to_json() for one in given]})
    assert resumptions_from_json(stored) == given


@given(st.lists(RESUMPTIONS, min_size=1, max_size=2).map(tuple))
def test_a_plan_keeps_them_and_says_when_the_run_was_resumed(given: tuple[Resumption, ...]) -> None:
    stored = read_back(plan_of(resumptions=given).to_json())
    plan: RunPlan = plan_from_json(stored)
    assert plan.resumptions == given
    assert stored["resumedAt"] == [one.at for one in given if one.kind == "resume"]


def test_a_run_that_was_never_taken_up_again_says_nothing_of_it() -> None:
    stored = plan_of().to_json()
    assert not {"resumptions", "resumedAt"} & set(stored)
    assert resumptions_from_json(stored) == ()


def test_what_a_later_version_adds_is_passed_over() -> None:
    stored = Resumption("now", "resume", dict.fromkeys(Step, 1)).to_json()
    [read] = resumptions_from_json({"resumptions": [{**stored, "later": True}]})
    assert read.counts == dict.fromkeys(Step, 1)


@pytest.mark.parametrize(
    "wrong",
    [{"kind": "again"}, {"kept": "1"}, {"at": 5}, {"changed": [{}]}, {"fixes": [1]}],
    ids=str,
)
def test_what_is_no_resumption_is_refused(wrong: dict[str, object]) -> None:
    stored = {**Resumption("now", "resume", dict.fromkeys(Step, 1)).to_json(), **wrong}
    with pytest.raises(ValueError):  # noqa: PT011 - its text is for people
        resumptions_from_json({"resumptions": [stored]})
