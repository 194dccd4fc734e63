"""Where trace and write record differ, and what is nobody's, as people and programs read it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_mst.domain.agreement import Agreement
from pytest_mst.domain.call_pair import CallDifference, CallPair, CallSide
from pytest_mst.domain.ending import Trial
from pytest_mst.domain.trace import Trace
from pytest_mst.report.attempts import Call, disk_rows
from pytest_mst.report.documents import (
    Circumstances,
    case_document,
    results_head,
    run_document,
    summary_document,
)
from pytest_mst.report.finish import read_run
from pytest_mst.report.pair_lines import pair_lines, stored_pairs
from pytest_mst.report.summary import KEPT_FINDINGS, case_row
from pytest_mst.report.terminal import closing_lines
from pytest_mst.store.append import RunWriter
from tests.report.rows import summarise
from tests.report.test_show import text_of
from tests.store.records import attempt_id, case_of, entry, plan_of, record, writer_in

NOWHERE = CallSide("chat", "post_message", {"channel": "#a"})
TEAM = CallSide("chat", "post_message", {"channel": "#b"})
OTHERWISE = CallPair(NOWHERE, TEAM, CallDifference("arguments.channel", "#a", "#b"))
SENT_AGAIN = CallPair(TEAM, TEAM, None, times_in_record=4)
MISSING = CallPair(
    NOWHERE,
    CallSide("chat", "post_message", {}),
    CallDifference("arguments.channel", in_trace="#a", only_in="trace"),
    joined=True,
)
LATER = "2026-11-30T09:50:00.000Z"


def lines_of(*pairs: CallPair) -> list[str]:
    stored = Agreement(checked=True, pairs=pairs).to_json()
    return list(pair_lines(stored_pairs(stored)))


def test_the_calls_of_a_pair_stand_in_one_column() -> None:
    assert lines_of(OTHERWISE) == [
        "side by side:",
        '  in the trace:  chat.post_message {"channel":"#a"}',
        '  in the record: chat.post_message {"channel":"#b"}',
        '  differ at arguments.channel: "#a" | "#b"',
    ]


def test_a_call_that_was_sent_again_and_again_is_shown_once() -> None:
    assert lines_of(SENT_AGAIN) == [
        "the same call, once in the trace and 4 times in the record:",
        '  chat.post_message {"channel":"#b"}',
    ]


def test_what_the_id_joins_and_what_one_side_lacks_are_said_to_be_so() -> None:
    lines = lines_of(MISSING)
    assert lines[0] == "side by side, matched by the client's id of the call:"
    assert lines[-1] == '  differ at arguments.channel: "#a" | nothing'


def test_pairs_of_a_form_that_is_not_known_are_passed_over() -> None:
    assert not stored_pairs({"pairs": [{"inTrace": 1}]})
    assert not stored_pairs({"pairs": "none"})


def test_nothing_in_a_pair_steers_the_terminal() -> None:
    evil = CallSide("\x1b[2J", "\x07\u202e", {"\x1b[31m": "\x1b[0m"})
    pair = CallPair(evil, evil, CallDifference("arguments\x1b[2J", "\x1b[0m", "\u202e"))
    assert all(line.isprintable() for line in lines_of(pair, SENT_AGAIN))


def a_run(folder: Path, agreement: Agreement) -> RunWriter:
    writer = writer_in(folder)
    plan = plan_of(case_of("a"))
    writer.run_json(run_document(plan, Circumstances("1")))
    trial = record(attempt_id(0, "a"), Trial(), trace=Trace("done"), agreement=agreement)
    writer.attempt(trial)
    return writer


def test_show_has_pairs_and_what_is_nobodys(tmp_path: Path) -> None:
    agreement = Agreement(
        checked=True, pairs=(OTHERWISE,), unattributed=(TEAM,), contested=(NOWHERE,)
    )
    text = text_of(a_run(tmp_path, agreement), attempt_id(0, "a"))
    assert '  in the record: chat.post_message {"channel":"#b"}' in text
    assert 'unattributed write: chat.post_message {"channel":"#b"}' in text
    assert 'call that other traces claim, too: chat.post_message {"channel":"#a"}' in text


def test_results_say_of_each_trial_whether_it_was_compared(tmp_path: Path) -> None:
    for checked in (True, False):
        writer = a_run(tmp_path, Agreement(checked=checked))
        [(case, attempts)] = disk_rows(plan_of(case_of("a")), writer.layout)
        document: Any = case_document(case_row(case, attempts), attempts)
        assert document["trials"][0]["agreementChecked"] is checked


def test_the_writes_of_nobody_are_in_every_account_of_a_run(tmp_path: Path) -> None:
    writer = a_run(tmp_path, Agreement(checked=True))
    plan = plan_of(case_of("a"))
    file = writer.connection_file("default", "c1")
    for seq in range(2):
        file.record(entry(seq))
    file.give([entry(1)], attempt_id(0, "a"))
    file.close()
    with Path(writer.layout.connection_file("default", "c1")).open("a") as torn:
        torn.write('{"format": ')
    summary = read_run(plan, writer.layout)
    (variant,) = summary.variants
    assert [call.tool for call in variant.unattributed] == ["post_message", "unreadable"]
    stored: Any = summary_document(summary, timestamp=LATER)
    nobodys = stored["variants"][0]["unattributedWrites"]
    assert nobodys == [call.to_json() for call in variant.unattributed]
    head = results_head(plan, {"default": variant.unattributed, "other": ()})
    assert head["unattributedWrites"] == {
        "default": [call.to_json() for call in variant.unattributed]
    }
    lines = closing_lines(summary, "here")
    assert (
        'unattributed write: chat.post_message {"channel":"#team"}'
        " (variant default, of no attempt known)"
    ) in lines


def test_of_very_many_writes_of_nobody_the_first_are_listed() -> None:
    summary = summarise(plan_of(case_of("a")), [])
    (variant,) = summary.variants
    many = (Call("chat", "post\x1b", {}),) * (KEPT_FINDINGS + 5)
    lines = closing_lines(replace(summary, variants=(replace(variant, unattributed=many),)), "here")
    assert sum(line.startswith("unattributed write: chat.post\\x1b {}") for line in lines) == 20
    assert "unattributed writes: 5 more (variant default)" in lines
