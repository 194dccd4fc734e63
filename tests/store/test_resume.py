"""What becomes of one planned attempt when its run is taken up again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pytest

from pytest_mst.domain.ending import Broke, Ending, InfrastructureFailure, Trial
from pytest_mst.domain.identity import Identity
from pytest_mst.domain.resumption import Decision, Step
from pytest_mst.domain.score import GradeOutcome, GraderFailure, Score, Unknown
from pytest_mst.domain.trace import Trace
from pytest_mst.store.journal import TornLine
from pytest_mst.store.read import NO_SCORE, StoredAttempt, UnreadableAttempt, WriteRecord
from pytest_mst.store.resume import Rules, Today, decide
from tests.store.records import LOST, attempt_id, record

TODAY = Identity({"case": "1", "input": "2"}, "graded by this", tools="these tools")
PASSED = Score("containsText", passed=True)
SETUP = InfrastructureFailure(Broke.SETUP, "no permission: grant it", retryable=False)
TORN = WriteRecord(torn=(TornLine(1, "cut"),))
NOTHING, PLAIN = WriteRecord(), Rules()
FIXED, STRICT, GRADE_ONLY = Rules(fixed=True), Rules(strict_tools=True), Rules(grade_only=True)


def stored(
    ending: Ending | None = None,
    *outcomes: GradeOutcome,
    writes: WriteRecord = NOTHING,
    **more: Any,
) -> StoredAttempt:
    """Store an attempt as today's identity would have it; a trial that passed if not said."""
    fields: dict[str, Any] = {
        "key": TODAY.key,
        "key_parts": TODAY.parts,
        "grading_key": TODAY.grading_key,
        "tools_key": TODAY.tools,
        "trace": Trace("done"),
        **more,
    }
    said = outcomes or ((PASSED,) if ending is None else ())
    return StoredAttempt(record(attempt_id(), ending or Trial(), **fields), said, writes=writes)


def decided(
    found: StoredAttempt | UnreadableAttempt | None,
    rules: Rules = PLAIN,
    today: Identity = TODAY,
    **more: Any,
) -> Decision:
    return decide(found, Today(today, **more), rules)


def changed(
    *, parts: Mapping[str, str] = MappingProxyType({}), grading: str = "", tools: str = ""
) -> Identity:
    """Return today's identity with something changed."""
    return Identity(
        {**TODAY.parts, **parts}, grading or TODAY.grading_key, tools=tools or TODAY.tools
    )


@pytest.mark.parametrize("rules", [Rules(), FIXED, STRICT])
def test_a_graded_trial_is_kept(rules: Rules) -> None:
    assert decided(stored(), rules) == Decision(Step.KEEP, "it is there")


def test_a_failed_trial_is_kept_too() -> None:
    failed = stored(Trial("it gave up"), Score("containsText", passed=False))
    assert decided(failed, FIXED).step is Step.KEEP


def test_what_never_began_is_collected() -> None:
    assert decided(None) == Decision(Step.COLLECT, "it never began")


def test_what_cannot_be_read_is_collected_and_says_why() -> None:
    found = UnreadableAttempt(attempt_id(), "0.json", "cut at 7")
    decision = decided(found)
    assert decision.step is Step.COLLECT
    assert "cut at 7" in decision.reason


def test_a_trial_whose_write_record_is_torn_is_collected() -> None:
    assert decided(stored(writes=TORN)).step is Step.COLLECT


@pytest.mark.parametrize("ending", [LOST, SETUP])
def test_a_torn_write_record_changes_nothing_for_what_is_no_trial(ending: Ending) -> None:
    assert decided(stored(ending, writes=TORN)) == decided(stored(ending))


def test_a_failure_that_a_retry_can_help_is_collected() -> None:
    assert decided(stored(LOST)).step is Step.COLLECT


def test_what_a_lost_worker_left_has_no_key_and_is_not_called_changed() -> None:
    decision = decided(stored(LOST, key="", key_parts={}, grading_key="", tools_key=""))
    assert (decision.step, decision.changed) == (Step.COLLECT, ())


def test_a_failure_that_a_retry_cannot_help_is_kept_with_what_to_fix_until_it_is_fixed() -> None:
    decision = decided(stored(SETUP))
    assert decision.step is Step.KEEP
    assert decision.fix == "setup: no permission: grant it"
    assert decided(stored(SETUP), FIXED).step is Step.COLLECT
    assert decided(stored(SETUP), FIXED).fix is None


@pytest.mark.parametrize("ending", [None, SETUP, LOST])
def test_a_changed_attempt_is_collected_and_its_changed_parts_are_named(
    ending: Ending | None,
) -> None:
    today = changed(parts={"input": "9", "source": "8"})
    decision = decided(stored(ending), today=today)
    assert decision == Decision(Step.COLLECT, "changed: input, source", ("input", "source"))


def test_a_part_that_is_gone_is_named() -> None:
    found = stored(key="another", key_parts={**TODAY.parts, "source": "7"})
    assert decided(found).changed == ("source",)


def test_a_key_that_nothing_is_known_of_is_a_change() -> None:
    assert decided(stored(key="of another tool", key_parts={})).changed == ("case", "input")
    assert decided(stored(key="of another tool")).changed == ("key",)


def test_what_grades_it_changed_and_so_all_of_it_is_graded_again() -> None:
    decision = decided(stored(), today=changed(grading="graded by that"))
    assert (decision.step, decision.graders, decision.changed) == (Step.GRADE, None, ())


def test_a_changed_grading_key_is_nothing_to_what_is_no_trial() -> None:
    today = changed(grading="graded by that")
    assert decided(stored(SETUP), today=today).step is Step.KEEP


MISSING = GraderFailure("rubric", NO_SCORE)


@pytest.mark.parametrize(
    "outcomes",
    [
        (MISSING,),
        (PASSED, MISSING),
        (Score("containsText", passed=False), MISSING),  # decided, and yet not whole
        (PASSED, GraderFailure("rubric", "the judge is out of quota")),
        (PASSED, Unknown("judge", "who knows"), MISSING),
    ],
)
def test_only_the_graders_without_a_score_are_asked_again(
    outcomes: Sequence[GradeOutcome],
) -> None:
    decision = decided(stored(Trial(), *outcomes))
    assert (decision.step, decision.graders) == (Step.GRADE, frozenset({"rubric"}))


def test_a_trial_that_no_grader_scored_is_graded_by_all() -> None:
    decision = decided(stored(Trial()))
    assert (decision.step, decision.graders) == (Step.GRADE, None)


def test_an_unknown_is_kept_and_listed_with_what_would_make_it_known() -> None:
    found = stored(Trial(), PASSED, Unknown("outcome", "ask the server"))
    decision = decided(found)
    assert decision.step is Step.KEEP
    assert decision.fix == "outcome cannot tell: ask the server"
    fixed = decided(found, FIXED)
    assert (fixed.step, fixed.graders, fixed.fix) == (Step.GRADE, frozenset({"outcome"}), None)


def test_an_unknown_beside_a_failed_score_is_nothing_to_fix() -> None:
    found = stored(Trial(), Score("containsText", passed=False), Unknown("outcome", "who knows"))
    assert decided(found) == Decision(Step.KEEP, "it is there")


def test_an_unknown_is_asked_again_once_what_grades_has_changed() -> None:
    found = stored(Trial(), Unknown("outcome", "ask the server"))
    decision = decided(found, today=changed(grading="graded by that"))
    assert (decision.step, decision.graders) == (Step.GRADE, None)


BODY = GraderFailure("body", "the test body raised KeyError")


@pytest.mark.parametrize("outcomes", [(BODY,), (PASSED, BODY), (MISSING, BODY), ()])
def test_a_body_that_runs_the_client_and_did_not_grade_is_collected_again(
    outcomes: Sequence[GradeOutcome],
) -> None:
    found = stored(Trial(), *outcomes)
    assert decided(found).step is Step.GRADE
    assert decided(found, body_collects="body").step is Step.COLLECT
    assert decided(stored(), body_collects="body").step is Step.KEEP


def test_graders_beside_a_body_that_runs_the_client_grade_without_it() -> None:
    found = stored(Trial(), MISSING, graders=("rubric", "body"))
    decision = decided(found, body_collects="body")
    assert (decision.step, decision.graders) == (Step.GRADE, frozenset({"rubric"}))
    today = Today(changed(grading="graded by that"), frozenset({"writes"}), "body")
    decision = decide(found, today, PLAIN)
    assert (decision.step, decision.graders) == (Step.GRADE, frozenset({"rubric", "writes"}))


def test_other_tools_collect_only_where_that_is_asked_for() -> None:
    today = changed(tools="other tools")
    assert decided(stored(), today=today).step is Step.KEEP
    assert decided(stored(), STRICT, today) == Decision(Step.COLLECT, "changed: tools", ("tools",))
    both = Identity({**TODAY.parts, "input": "9"}, TODAY.grading_key, tools="other tools")
    assert decided(stored(), STRICT, both).changed == ("input", "tools")


def test_tools_that_are_not_known_are_no_difference() -> None:
    assert decided(stored(tools_key=""), STRICT).step is Step.KEEP
    unknown = Identity(TODAY.parts, TODAY.grading_key, tools="")
    assert decided(stored(), STRICT, unknown).step is Step.KEEP


def test_grading_only_grades_every_trial_and_collects_nothing() -> None:
    today = changed(parts={"input": "9"}, tools="other tools")
    for found in (stored(), stored(Trial(), MISSING), stored(grading_key="x")):
        assert decided(found, GRADE_ONLY).step is Step.GRADE
        assert decided(found, GRADE_ONLY).graders is None
    assert decided(stored(), GRADE_ONLY, today).changed == ("input",)
    for ending in (LOST, SETUP):
        assert decided(stored(ending), GRADE_ONLY, today) == Decision(Step.KEEP, "it is no trial")


@pytest.mark.parametrize(
    ("found", "more"),
    [
        (None, {}),
        (UnreadableAttempt(attempt_id(), "0.json", "cut"), {}),
        (stored(trace=None), {}),
        (stored(writes=TORN), {}),
        (stored(), {"body_collects": "body"}),
    ],
    ids=["unstarted", "unreadable", "no trace", "torn writes", "a body that collects"],
)
def test_grading_only_lists_what_it_cannot_grade(
    found: StoredAttempt | UnreadableAttempt | None, more: dict[str, Any]
) -> None:
    decision = decide(found, Today(TODAY, **more), GRADE_ONLY)
    assert decision.step is Step.KEEP
    assert decision.fix


def test_a_trial_whose_outcome_could_not_be_read_is_collected_anew_unless_it_failed() -> None:
    unread = GraderFailure("outcome", "the server was gone")
    assert decided(stored(None, PASSED, unread)) == Decision(
        Step.COLLECT, "its outcome could not be read"
    )
    failed = Score("containsText", passed=False)
    assert decided(stored(None, failed, unread)).step is Step.KEEP
    rubric = GraderFailure("rubric", "no judge")
    assert decided(stored(None, failed, unread, rubric)).graders == frozenset({"rubric"})
    assert decided(stored(None, PASSED, unread), GRADE_ONLY).step is Step.GRADE
