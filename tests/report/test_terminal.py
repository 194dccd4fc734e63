"""The closing block of one eval."""

from __future__ import annotations

from pytest_mst.domain.ending import Broke, InfrastructureFailure
from pytest_mst.domain.plan import RunPlan, ServerInfo, VariantInfo
from pytest_mst.domain.run import AttemptId
from pytest_mst.domain.write import WriteMode
from pytest_mst.report.attempts import AttemptRow, Call
from pytest_mst.report.terminal import closing_lines
from tests.report.rows import (
    BROKEN,
    CALL,
    CLAIMED,
    DEADLINE,
    NO_KEY,
    PASS,
    REQUESTED,
    failed,
    lost,
    passed,
    row,
    summarise,
)
from tests.store.records import attempt_id, case_of, plan_of

RUN_DIR = ".mst-results/team-chat/runs/20261130T094500Z-7f3c2a"


def block(plan: RunPlan, *attempts: AttemptRow, can_resume: bool = True) -> list[str]:
    return closing_lines(summarise(plan, attempts), RUN_DIR, can_resume=can_resume)


def an_unfinished_run() -> tuple[RunPlan, list[AttemptRow]]:
    plan = plan_of(
        case_of("read", trials=2), case_of("write", trials=2, write_case=True), case_of("rest", 2)
    )
    writes = [row(attempt_id(n, "write"), REQUESTED) for n in range(2)]
    return plan, [passed(0, "read"), passed(1, "read"), *writes, lost(0, "rest", DEADLINE)]


def test_the_block_ends_word_for_word_as_scripts_expect() -> None:
    plan, attempts = an_unfinished_run()
    assert block(plan, *attempts)[-4:] == [
        "planned 6 = graded 4 + ungraded 0 + infrastructure 1 + unstarted 1",
        "pass rate 100% (2 of 2 complete cases; 1 incomplete left out), lowest evidence: requested",
        "run 20261130T094500Z-7f3c2a in .mst-results/team-chat/runs/20261130T094500Z-7f3c2a",
        "finish it with: pytest --mst --mst-resume 7f3c2a",
    ]


def test_case_lines_carry_verdict_trials_share_and_evidence() -> None:
    plan, attempts = an_unfinished_run()
    first, second, third = block(plan, *attempts)[:3]
    assert first == "passed      read: graded 2 of 2, 100% passed"
    assert second == "passed      write: graded 2 of 2, 100% passed, evidence requested"
    where = attempts[-1].locator
    assert third.startswith(
        "incomplete  rest: graded 0 of 2, 0 passed;"
        f" infrastructure 1: deadline: no end after 300 s ({where}), --mst-resume can help;"
        " unstarted 1: never began (@"
    )
    assert third.endswith("), --mst-resume can help")
    assert "fail" not in third.lower()


def test_no_command_is_printed_that_does_not_exist() -> None:
    plan, attempts = an_unfinished_run()
    lines = block(plan, *attempts, can_resume=False)
    assert lines[-1] == "1 incomplete case can be run again"
    assert not [line for line in lines if "--mst-resume" in line]
    assert "running it again can help" in lines[2]


def test_a_run_with_nothing_left_has_nothing_to_finish() -> None:
    lines = block(plan_of(case_of()), passed())
    assert lines == [
        "passed      post-summary: graded 1 of 1, 100% passed",
        "planned 1 = graded 1 + ungraded 0 + infrastructure 0 + unstarted 0",
        "pass rate 100% (1 of 1 complete cases; 0 incomplete left out)",
        f"run 20261130T094500Z-7f3c2a in {RUN_DIR}",
    ]


def test_with_no_complete_case_the_pass_rate_has_no_number() -> None:
    lines = block(plan_of(case_of(write_case=True)), lost())
    assert "pass rate n/a (0 of 0 complete cases; 1 incomplete left out)" in lines


def test_a_failed_case_says_why() -> None:
    attempt = failed()
    assert block(plan_of(case_of()), attempt)[0] == (
        "failed      post-summary: graded 1 of 1, 0% passed;"
        f" failed 1: containsText: 'posted' is not in the answer ({attempt.locator})"
    )


def test_of_many_reasons_the_first_are_told_and_the_rest_is_counted() -> None:
    causes = [InfrastructureFailure(Broke.NETWORK, str(n), retryable=True) for n in range(5)]
    attempts = [lost(n, why=cause) for n, cause in enumerate(causes)]
    line = block(plan_of(case_of(trials=5)), *attempts)[0]
    assert line.count("infrastructure 1: network: ") == 3
    assert line.endswith("; 2 more reasons in results.json")


def test_what_a_retry_cannot_help_says_what_to_fix() -> None:
    line = block(plan_of(case_of()), lost(why=NO_KEY))[0]
    assert "setup: set CHAT_TOKEN" in line
    assert line.endswith("to be fixed first")


def test_an_ungraded_trial_says_which_grader_could_not_run() -> None:
    line = block(plan_of(case_of()), row(attempt_id(), PASS, BROKEN))[0]
    assert "ungraded 1: rubric could not run: no API key" in line
    assert line.endswith("--mst-resume can help")


def test_a_skipped_case_says_why() -> None:
    lines = block(plan_of(case_of(skip="waiting for the\nnew search")))
    assert lines[0] == "skipped     post-summary: waiting for the\\nnew search"
    assert "pass rate n/a (0 of 0 complete cases; 0 incomplete left out)" in lines


def test_writes_to_look_at_are_listed_with_server_tool_and_arguments() -> None:
    attempt = row(
        attempt_id(),
        REQUESTED,
        unreported=(CALL,),
        unrecorded=(Call(None, "post\x1b[2J", {"text": "\x1b[31m" + "x" * 1000}),),
        unclassified=(CALL,),
        refused=(CALL,) * 25,
        unclassified_calls=3,
        wrote=True,
    )
    lines = block(plan_of(case_of()), attempt)
    call, where = 'chat.post_message {"channel":"#team"}', f"(post-summary {attempt.locator})"
    assert f"unreported write: {call} {where}" in lines
    assert f"unclassified call: {call} {where}" in lines
    assert "unclassified calls: 2 more" in lines
    assert lines.count(f"refused call: {call} {where}") == 20
    assert "refused calls: 5 more" in lines
    (unrecorded,) = [line for line in lines if line.startswith("unrecorded write: ")]
    assert unrecorded.startswith('unrecorded write: post\\x1b[2J {"text":"\\u001b[31mxxx')
    assert len(unrecorded) < 300


def test_variants_are_compared_and_unguarded_ones_are_marked() -> None:
    unguarded = ServerInfo("chat", WriteMode.UNGUARDED)
    plan = plan_of(
        case_of("a", variant="default"),
        case_of("a", variant="legacy", unguarded=True, write_case=True),
        variants=(
            VariantInfo("default", "scripted"),
            VariantInfo("legacy", "scripted", servers=(unguarded,)),
        ),
    )
    lines = block(
        plan,
        row(AttemptId("default", "a", 0), PASS),
        row(AttemptId("legacy", "a", 0), PASS, unclassified=(CALL,), unclassified_calls=1),
    )
    assert lines[0] == "passed      a [default]: graded 1 of 1, 100% passed"
    assert lines[1].endswith("100% passed, evidence none, unguarded")
    assert "variant default: pass rate 100% (1 of 1 complete cases; 0 incomplete left out)" in lines
    assert (
        "variant legacy is unguarded: its writes were not stopped, 1 of its calls may have written"
    ) in lines


def test_dispatched_calls_are_listed_with_their_dispatcher_and_their_target() -> None:
    attempt = row(
        attempt_id(),
        unreported=(Call("chat", "create_person", {"name": "Ada"}, ("chat", "execute_tool")),),
        unclassified=(Call("crm", "list_people", {}, ("chat", "execute_tool")),),
        unparsed=(Call("chat", "execute_tool", {"tool": 7}),),
    )
    where = f"(post-summary {attempt.locator})"
    assert block(plan_of(case_of()), attempt)[1:5] == [
        f'unreported write: chat.execute_tool -> create_person {{"name":"Ada"}} {where}',
        f"unclassified call: chat.execute_tool -> crm.list_people {{}} {where}",
        f'unparsed call: chat.execute_tool {{"tool":7}} {where}',
        "variant default has 1 unparsed call",
    ]


def test_the_lowest_evidence_is_beside_each_rate() -> None:
    plan = plan_of(
        case_of("a", variant="one", write_case=True),
        case_of("b", variant="one", write_case=True),
        case_of("a", variant="two", write_case=True),
        variants=(VariantInfo("one", "scripted"), VariantInfo("two", "scripted")),
    )
    rows = [
        row(AttemptId("one", "a", 0), REQUESTED),
        row(AttemptId("one", "b", 0), CLAIMED),
        row(AttemptId("two", "a", 0), REQUESTED),
    ]
    rates = [line for line in block(plan, *rows) if "pass rate" in line]
    assert rates == [
        "variant one: pass rate 100% (2 of 2 complete cases; 0 incomplete left out),"
        " lowest evidence: claimed",
        "variant two: pass rate 100% (1 of 1 complete cases; 0 incomplete left out),"
        " lowest evidence: requested",
        "pass rate 100% (3 of 3 complete cases; 0 incomplete left out), lowest evidence: claimed",
    ]


def test_what_no_proxy_stood_before_is_not_said_to_have_made_no_write() -> None:
    server = ServerInfo("docs", WriteMode.UNGUARDED, direct=True)
    plan = plan_of(case_of(), variants=(VariantInfo("default", "scripted", servers=(server,)),))
    assert (
        "variant default is unguarded: its writes were not stopped, 0 of its calls may have"
        " written, and what it wrote to docs nobody saw"
    ) in block(plan, row(attempt_id()))


def test_a_variant_is_told_by_what_became_of_its_writes() -> None:
    modes = {"chat": WriteMode.LIVE, "docs": WriteMode.PLANNED, "crm": WriteMode.SERVER_PLANNED}
    servers = tuple(ServerInfo(label, mode) for label, mode in modes.items())
    plan = plan_of(case_of(), variants=(VariantInfo("default", "scripted", servers=servers),))
    lines = block(plan, row(attempt_id(), unclassified_calls=2, unparsed=(CALL,) * 3))
    assert [line for line in lines if line.startswith("variant ")] == [
        "variant default is live: its writes to chat were let through, but for those of cases"
        " without an outcome check",
        "variant default has 2 unclassified calls",
        "variant default has 3 unparsed calls",
    ]


def test_no_text_from_outside_steers_the_terminal() -> None:
    evil = "\x1b]0;title\x07\u202e\ud83d\r\n"
    why = InfrastructureFailure(Broke.CLIENT_APP, evil, retryable=True)
    plan = plan_of(case_of(evil, variant=evil), case_of(evil, variant="b" + evil))
    id_ = AttemptId(evil, evil, 0)
    lines = closing_lines(
        summarise(plan, [row(id_, ending=why, unreported=(Call(evil, evil, {evil: evil}),))]),
        evil,
        can_resume=True,
    )
    assert all(line.isprintable() for line in lines)
