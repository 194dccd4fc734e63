"""The grader of writes: the record against what is expected, and against the trace."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_mst.domain.agreement import Agreement
from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.score import GradeOutcome, Score, Unknown
from pytest_mst.domain.write import WriteEntry, WriteMode
from pytest_mst.grading.writes import WritesGrader
from tests.grading.trials import case_of, dispatched, entry, event, facts_of

POST = {"server": "chat", "tool": "post_message", "arguments": {"channel": "#team"}}


def outcome(expected: Any, *writes: WriteEntry, **facts: Any) -> GradeOutcome:
    case = case_of() if expected is None else case_of(expected={"writes": expected})
    return WritesGrader().grade(facts_of(case, writes=writes, **facts))


def graded(*args: Any, **facts: Any) -> Score:
    score = outcome(*args, **facts)
    assert isinstance(score, Score), score
    json.dumps(score.details)
    return score


def test_an_expected_write_in_the_record_passes_as_requested() -> None:
    score = graded([POST], entry(arguments={"channel": "#team", "text": "hi"}))
    assert score.passed
    assert score.value == 1
    assert score.evidence is Evidence.REQUESTED


def test_the_trace_and_the_answer_are_no_evidence_of_a_write() -> None:
    score = graded(
        [POST], events=[event(arguments={"channel": "#team"})], answer="I have posted it."
    )
    assert not score.passed
    assert score.value == 0
    assert score.reason == (
        'expected write chat.post_message {"channel": "#team"}, but there was none at all'
    )


def test_a_write_on_a_server_that_is_not_named_fits_any() -> None:
    assert graded([{"tool": "post_message"}], entry(server="other")).passed
    assert not graded([POST], entry(server="other", arguments={"channel": "#team"})).passed


def test_a_fail_names_the_nearest_write_and_the_path() -> None:
    score = graded([POST], entry(arguments={"channel": "#general"}))
    assert score.reason is not None
    assert 'at arguments.channel expected string "#team", found string "#general"' in score.reason


@pytest.mark.parametrize("none", [[], {"calls": []}, {"calls": [], "exclusive": True}])
def test_an_empty_list_expects_no_write(none: Any) -> None:
    assert graded(none).passed
    score = graded(none, entry(arguments={"n": 1}))
    assert not score.passed
    assert score.reason == 'no write is expected, found: chat.post_message {"n": 1}'


def test_other_writes_fail_only_an_exclusive_expectation() -> None:
    writes = (entry(arguments={"channel": "#team"}), entry("delete_all", seq=1))
    assert graded({"calls": [POST]}, *writes).passed
    score = graded({"calls": [POST], "exclusive": True}, *writes)
    assert not score.passed
    assert score.reason == "writes that are not expected: chat.delete_all {}"


def test_a_dispatched_write_is_matched_by_its_target() -> None:
    issue = {"server": "github", "tool": "create_issue", "arguments": {"title": "T"}}
    made = dispatched("create_issue", {"title": "T"}, server="github")
    assert graded([issue], made).passed
    assert graded([{"tool": "create_issue"}], made).passed
    assert not graded([{"tool": "run_tool"}], made).passed


def test_a_refused_call_meets_no_expectation_and_is_named() -> None:
    refused = entry(arguments={"channel": "#team"}, refused="invalid-arguments")
    score = graded([POST], refused)
    assert not score.passed
    assert score.reason is not None
    assert "refused: chat.post_message" in score.reason
    assert "invalid-arguments" in score.reason
    assert score.details["refused"] == [
        {"call": 'chat.post_message {"channel": "#team"}', "refused": "invalid-arguments"}
    ]


@pytest.mark.parametrize("expected", [[], {"calls": [POST], "exclusive": True}])
def test_a_call_with_wrong_arguments_is_a_try_that_was_not_expected(expected: Any) -> None:
    made = entry(arguments={"channel": "#team", "text": "Summary"})
    tried = entry("create_channel", {"name": 4}, refused="invalid-arguments", seq=1)
    score = graded(expected, *([made] if expected else []), tried)
    assert not score.passed
    assert score.reason is not None
    assert "tried with arguments that do not fit: chat.create_channel" in score.reason


def test_a_call_that_missed_and_was_then_made_right_is_no_write_too_many() -> None:
    missed = entry(arguments={"channel": 4}, refused="invalid-arguments")
    made = entry(arguments={"channel": "#team", "text": "Summary"}, seq=1)
    assert graded({"calls": [POST], "exclusive": True}, missed, made).passed


def test_what_a_live_server_has_refused_itself_is_no_write_too_many() -> None:
    refused = entry("create_channel", {}, refused="invalid-arguments", mode=WriteMode.LIVE)
    assert graded([], refused).passed


def test_a_call_of_a_tool_that_is_not_there_is_no_write_too_many() -> None:
    refused = entry("no_such_tool", refused="unknown-tool")
    assert graded([], refused).passed
    made = entry(arguments={"channel": "#team"}, seq=1)
    assert graded({"calls": [POST], "exclusive": True}, refused, made).passed


# When it applies


@pytest.mark.parametrize(
    ("expected", "facts", "applies"),
    [
        (None, {}, False),
        ([], {}, True),
        (None, {"declared_writes": True}, True),
        (None, {"writes": [entry()]}, True),
        (None, {"agreement": Agreement(checked=True, unrecorded=(event(),))}, True),
        (None, {"agreement": Agreement(checked=True, unreported=(entry(),))}, True),
    ],
)
def test_it_runs_on_write_cases_and_on_trials_that_made_a_write(
    expected: Any, facts: dict[str, Any], applies: bool
) -> None:
    case = case_of() if expected is None else case_of(expected={"writes": expected})
    assert WritesGrader().applies(facts_of(case, **facts)) is applies


def test_declared_writes_expect_nothing_but_agreement() -> None:
    assert graded(None, declared_writes=True).passed
    assert graded(None, entry(), declared_writes=True).passed
    left_over = Agreement(checked=True, unreported=(entry(),))
    assert not graded(None, entry(), declared_writes=True, agreement=left_over).passed


# Agreement


def test_an_unreported_write_fails_and_is_named() -> None:
    hidden = entry("delete_all", {"n": 1})
    left_over = Agreement(checked=True, unreported=(hidden,))
    score = graded([{"tool": "delete_all"}], hidden, agreement=left_over)
    assert not score.passed
    assert score.reason == (
        'unreported, in the record and not in the trace: chat.delete_all {"n": 1}'
    )
    assert score.details["unreportedWrites"] == [
        {"server": "chat", "tool": "delete_all", "arguments": {"n": 1}}
    ]


def test_an_unrecorded_write_fails_and_is_named() -> None:
    left_over = Agreement(checked=True, unrecorded=(event("delete_all", {"n": 1}),))
    score = graded([], agreement=left_over)
    assert not score.passed
    assert score.reason == (
        'unrecorded, in the trace and not in the record: chat.delete_all {"n": 1}'
    )


def test_an_agreement_that_could_not_be_checked_is_said_and_does_not_fail() -> None:
    score = graded([{"tool": "post_message"}], entry(), agreement=Agreement(checked=False))
    assert score.passed
    assert score.details["agreementChecked"] is False
    assert "agreement" in score.details


# Evidence

UNGUARDED = {"chat": WriteMode.PLANNED, "legacy": WriteMode.UNGUARDED}


def test_an_unclassified_entry_weakens_the_evidence() -> None:
    made = entry(arguments={"channel": "#team"}, unclassified=True)
    score = graded([POST], made)
    assert score.passed
    assert score.evidence is Evidence.CALLED


@pytest.mark.parametrize(
    ("expected", "level"),
    [
        ([POST], Evidence.REQUESTED),
        ([{"tool": "post_message"}], Evidence.CALLED),
        ([{"server": "legacy", "tool": "post_message"}], Evidence.CALLED),
        ({"calls": [POST], "exclusive": True}, Evidence.CALLED),
        ([], Evidence.CALLED),
        (None, Evidence.CALLED),
    ],
)
def test_an_unguarded_server_weakens_what_is_said_about_it(expected: Any, level: Evidence) -> None:
    made = entry(arguments={"channel": "#team"})
    assert graded(expected, made, modes=UNGUARDED).evidence is level


def test_a_write_to_an_unguarded_server_weakens_the_evidence() -> None:
    made = (entry(arguments={"channel": "#team"}), entry(server="legacy", seq=1))
    assert graded([POST], *made, modes=UNGUARDED).evidence is Evidence.CALLED


# Dispatchers


def test_a_target_on_a_server_is_matched_by_that_server_and_by_the_label_that_took_it() -> None:
    made = dispatched("create_issue", {"title": "T"}, server="github")
    for server in ("github", "chat"):
        assert graded([{"server": server, "tool": "create_issue"}], made).passed
    score = graded([{"server": "gitlab", "tool": "create_issue"}], made)
    assert score.reason is not None
    assert "at server expected gitlab, found github" in score.reason


def test_a_target_without_a_server_is_one_of_the_server_that_took_the_call() -> None:
    made = dispatched("create_person", {"name": "A"})
    assert graded([{"server": "chat", "tool": "create_person"}], made).passed
    assert not graded([{"server": "github", "tool": "create_person"}], made).passed


def test_each_write_of_a_batch_meets_an_expectation_of_its_own() -> None:
    batch = [dispatched("create_person", {"name": name}, seq=i) for i, name in enumerate("AB")]
    both = [{"tool": "create_person", "arguments": {"name": name}} for name in "BA"]
    assert graded({"calls": both, "exclusive": True}, *batch).passed
    score = graded({"calls": both[:1], "exclusive": True}, *batch)
    assert score.reason == 'writes that are not expected: chat.create_person {"name": "A"}'
    assert not graded({"calls": both, "order": "strict"}, *batch).passed


UNREAD = entry("run_tool", {"params": "{title:"}, unparsed=True)


def test_a_call_whose_target_cannot_be_read_meets_no_expectation_and_is_named() -> None:
    scores = [graded([{"tool": tool}], UNREAD) for tool in ("create_issue", "run_tool")]
    assert [score.passed for score in scores] == [False, False]
    assert scores[1].reason == (
        "expected write run_tool {}, but there was none at all; "
        "dispatched calls whose targets could not be read: "
        'chat.run_tool {"params": "{title:"}'
    )
    assert scores[1].details["unparsed"] == ['chat.run_tool {"params": "{title:"}']


def test_a_call_whose_target_cannot_be_read_is_a_write_too_many() -> None:
    score = graded([], UNREAD)
    assert not score.passed
    assert score.reason == 'no write is expected, found: chat.run_tool {"params": "{title:"}'
    made = entry(arguments={"channel": "#team"}, seq=1)
    assert graded([POST], UNREAD, made).passed
    assert not graded({"calls": [POST], "exclusive": True}, UNREAD, made).passed


def test_a_call_that_was_refused_and_cannot_be_read_is_a_try() -> None:
    refused = entry("run_tool", {}, unparsed=True, refused="invalid-arguments")
    assert not graded([], refused).passed


def test_a_forwarded_call_that_cannot_be_read_leaves_no_write_expected_unknown() -> None:
    forwarded = entry("run_tool", {}, unparsed=True, unclassified=True)
    assert isinstance(outcome([], forwarded), Unknown)


@pytest.mark.parametrize("mode", [WriteMode.SERVER_PLANNED, WriteMode.LIVE])
def test_a_record_of_what_was_forwarded_says_what_was_requested(mode: WriteMode) -> None:
    made = entry(arguments={"channel": "#team"}, mode=mode)
    score = graded([POST], made, modes={"chat": mode})
    assert score.evidence is Evidence.REQUESTED
    maybe = entry("touch", seq=1, unclassified=True, mode=mode)
    assert graded([POST], made, maybe, modes={"chat": mode}).evidence is Evidence.CALLED


# What nobody can tell


def test_a_dispatched_call_nobody_can_tell_of_leaves_no_write_expected_unknown() -> None:
    maybe = dispatched("list_people", unclassified=True, mode=WriteMode.SERVER_PLANNED)
    found = outcome([], maybe)
    assert isinstance(found, Unknown)
    assert "list_people" in found.reason
    assert "readTargets" in found.reason
    assert not graded([], maybe, entry(seq=1)).passed


def test_a_forwarded_call_to_a_tool_that_is_not_read_only_is_a_write() -> None:
    forwarded = entry(unclassified=True, mode=WriteMode.UNGUARDED)
    score = graded([], forwarded)
    assert not score.passed
    assert score.evidence is Evidence.CALLED


def test_a_write_where_no_boundary_stood_is_unknown() -> None:
    no_boundary: dict[str, Any] = {"modes": UNGUARDED, "direct": frozenset({"legacy"})}
    for expected in ({"server": "legacy", "tool": "save"}, {"tool": "save"}):
        found = outcome([expected], **no_boundary)
        assert isinstance(found, Unknown)
        assert "legacy" in found.reason
    assert not graded([POST], **no_boundary).passed
    reads_only = {"chat": WriteMode.PLANNED, "legacy": WriteMode.READ_ONLY}
    assert not graded([{"tool": "save"}], modes=reads_only, direct=frozenset({"legacy"})).passed


def test_that_a_direct_server_was_asked_for_no_write_is_the_clients_word() -> None:
    reads_only: dict[str, Any] = {
        "modes": {"chat": WriteMode.PLANNED, "docs": WriteMode.READ_ONLY},
        "direct": frozenset({"docs"}),
    }
    assert graded([], **reads_only).evidence is Evidence.CALLED
    post = entry(arguments={"channel": "#team"})
    assert graded([POST], post, **reads_only).evidence is Evidence.REQUESTED


def test_a_fail_goes_before_what_is_unknown() -> None:
    score = graded(
        [POST, {"server": "legacy", "tool": "save"}],
        modes=UNGUARDED,
        direct=frozenset({"legacy"}),
    )
    assert not score.passed


def test_reasons_stay_short_with_many_large_writes() -> None:
    writes = [entry(arguments={"text": "x" * 10_000, "n": n}, seq=n) for n in range(50)]
    score = graded([], *writes)
    assert score.reason is not None
    assert len(score.reason) < 2000
    assert "and 45 more" in score.reason
