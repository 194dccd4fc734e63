"""Attempts whose client has one connection for all of them: whose writes are whose."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from pytest_mst.attempt.collect import collect
from pytest_mst.domain.ending import Broke, InfrastructureFailure
from pytest_mst.domain.run import AttemptId
from pytest_mst.domain.score import TrialVerdict, Unknown
from tests.attempt.shared import Act, Hand, Meeting, SharedSetting, expect

pytestmark = pytest.mark.anyio


async def test_each_of_eight_overlapping_attempts_gets_its_own_writes_and_no_other(
    tmp_path: Path,
) -> None:
    names = [f"a{number}" for number in range(8)]
    meetings = [Meeting(8), Meeting(8)]

    def act(name: str) -> Act:
        async def run(hand: Hand) -> None:
            await meetings[0].come()
            await hand.write(f"{name} first")
            await meetings[1].come()
            await hand.write(f"{name} second")

        return run

    setting = SharedSetting(tmp_path, {name: act(name) for name in names})
    await setting.make_all(**{name: expect(f"{name} first", f"{name} second") for name in names})
    for name in names:
        assert (
            setting.texts(name)
            == setting.stored_texts(name)
            == [
                f"{name} first",
                f"{name} second",
            ]
        )
        assert setting.verdict(name) is TrialVerdict.PASSED
        assert [entry.seq for entry in setting.finished[name].writes] == [0, 1]
    assert setting.nobodys() == []
    assert len(setting.client.boundaries) == len(setting.client.sessions) == 1


async def test_64_overlapping_attempts_on_one_http_session_lose_no_write_and_have_none_twice(
    tmp_path: Path,
) -> None:
    names = [f"a{number}" for number in range(64)]
    meetings = [Meeting(64), Meeting(64)]

    def act(name: str) -> Act:
        async def run(hand: Hand) -> None:
            await meetings[0].come()
            await hand.write(name)
            await hand.write("the same of all")
            await meetings[1].come()

        return run

    setting = SharedSetting(tmp_path, {name: act(name) for name in names}, over_http=True)
    await setting.make_all(**{name: expect(name, "the same of all") for name in names})
    for name in names:
        assert setting.stored_texts(name) == [name, "the same of all"]
        assert setting.verdict(name) is TrialVerdict.PASSED
    assert setting.nobodys() == []
    assert len(setting.client.urls) == len(setting.client.sessions) == 1


async def test_one_that_lies_and_one_that_is_silent_leave_no_write_lost_and_none_twice(
    tmp_path: Path,
) -> None:
    names = [f"a{number}" for number in range(6)]
    meetings = [Meeting(8), Meeting(8)]

    def act(write: str | None, tell: str | None) -> Act:
        async def run(hand: Hand) -> None:
            await meetings[0].come()
            if write is not None:
                await hand.write(write, tell=False)
            if tell is not None:
                hand.tell(tell)
            await meetings[1].come()

        return run

    acts = {name: act(name, name) for name in names}
    acts |= {"liar": act(None, "made up"), "silent": act("hidden", None)}
    setting = SharedSetting(tmp_path, acts)
    await setting.make_all(**{name: expect(name) for name in [*names, "silent"]}, liar={})
    everywhere = Counter(text for name in acts for text in setting.stored_texts(name))
    assert everywhere + Counter(setting.nobodys()) == Counter([*names, "hidden"])
    assert setting.nobodys() == ["hidden"]
    assert setting.verdict("liar") is TrialVerdict.FAILED
    agreement = setting.finished["liar"].record.agreement
    assert agreement is not None
    assert [event.arguments for event in agreement.unrecorded] == [{"text": "made up"}]
    for name in [*names, "silent"]:
        assert isinstance(setting.writes_grade(name), Unknown)
        assert "hidden" in setting.writes_grade(name).reason
        assert setting.verdict(name) is TrialVerdict.UNGRADED


async def test_an_attempt_that_does_not_overlap_with_a_silent_one_is_graded_for_sure(
    tmp_path: Path,
) -> None:
    async def open_one(hand: Hand) -> None:
        await hand.write("open")

    async def silent(hand: Hand) -> None:
        await hand.write("hidden", tell=False)

    setting = SharedSetting(tmp_path, {"first": open_one, "silent": silent, "last": open_one})
    async with setting.open():
        for case in ("first", "silent", "last"):
            await setting.make(case, expect("open"))
    assert setting.verdict("first") is setting.verdict("last") is TrialVerdict.PASSED
    assert setting.verdict("silent") is TrialVerdict.UNGRADED
    assert setting.nobodys() == ["hidden"]


async def test_what_the_first_attempt_of_all_does_not_tell_of_is_unreported(
    tmp_path: Path,
) -> None:
    async def silent(hand: Hand) -> None:
        await hand.write("hidden", tell=False)

    setting = SharedSetting(tmp_path, {"silent": silent})
    async with setting.open():
        await setting.make("silent", expect("hidden"))
    assert setting.verdict("silent") is TrialVerdict.FAILED
    agreement = setting.finished["silent"].record.agreement
    assert agreement is not None
    assert [entry.arguments for entry in agreement.unreported] == [{"text": "hidden"}]
    assert setting.nobodys() == []


async def test_a_call_that_comes_after_its_attempt_has_ended_is_nobodys(tmp_path: Path) -> None:
    late = anyio.Event()
    sent = anyio.Event()
    begun = anyio.Event()

    async def lets_loose(hand: Hand) -> None:
        async def later() -> None:
            await late.wait()
            await hand.write("late", tell=False)
            sent.set()

        setting.client.tasks.start_soon(later)

    async def waits(hand: Hand) -> None:
        begun.set()
        await sent.wait()

    setting = SharedSetting(tmp_path, {"early": lets_loose, "next": waits})
    async with setting.open():
        await setting.make("early", expect())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(setting.make, "next", expect())
            await begun.wait()
            late.set()
    assert setting.verdict("early") is TrialVerdict.PASSED
    assert setting.texts("next") == []
    assert isinstance(setting.writes_grade("next"), Unknown)
    assert setting.nobodys() == ["late"]


async def test_a_call_while_no_attempt_is_under_way_is_refused(tmp_path: Path) -> None:
    errors: list[str] = []
    kept: list[Hand] = []

    async def run(hand: Hand) -> None:
        kept.append(hand)

    setting = SharedSetting(tmp_path, {"one": run})
    async with setting.open():
        await setting.make("one")
        try:
            await kept[0].write("nobody is there")
        except Exception as error:  # noqa: BLE001 - whatever the SDK makes of an error
            errors.append(str(error))
    assert len(errors) == 1
    assert "No attempt is under way" in errors[0]
    assert setting.nobodys() == []


async def test_where_two_claim_one_write_nobody_passes(tmp_path: Path) -> None:
    meetings = [Meeting(2), Meeting(2)]

    def act(*, writes: bool) -> Act:
        async def run(hand: Hand) -> None:
            await meetings[0].come()
            if writes:
                await hand.write("same", tell=False)
            hand.tell("same")
            await meetings[1].come()

        return run

    setting = SharedSetting(tmp_path, {"honest": act(writes=True), "liar": act(writes=False)})
    await setting.make_all(honest=expect("same"), liar=expect("same"))
    for case in ("honest", "liar"):
        assert isinstance(setting.writes_grade(case), Unknown)
        assert "claim more" in setting.writes_grade(case).reason
    assert len(setting.texts("honest")) + len(setting.texts("liar")) == 1
    assert setting.nobodys() == []


async def test_two_that_made_the_same_write_have_one_each(tmp_path: Path) -> None:
    meeting = Meeting(2)

    async def run(hand: Hand) -> None:
        await meeting.come()
        await hand.write("same")

    setting = SharedSetting(tmp_path, {"one": run, "other": run})
    await setting.make_all(one=expect("same"), other=expect("same"))
    assert setting.verdict("one") is setting.verdict("other") is TrialVerdict.PASSED


async def test_the_clients_id_tells_writes_apart_that_are_told_shortened(tmp_path: Path) -> None:
    meeting = Meeting(2)

    def act(name: str) -> Act:
        async def run(hand: Hand) -> None:
            await meeting.come()
            await hand.write(f"{name} and much more", tell=False, join_id=f"call-{name}")
            hand.tell("…", join_id=f"call-{name}")

        return run

    setting = SharedSetting(tmp_path, {"one": act("one"), "other": act("other")})
    await setting.make_all(one=expect("one and much more"), other=expect("other and much more"))
    for case in ("one", "other"):
        assert setting.verdict(case) is TrialVerdict.PASSED
        agreement = setting.finished[case].record.agreement
        assert agreement is not None
        (pair,) = agreement.pairs
        assert pair.joined
        assert pair.difference is not None
        assert pair.difference.path == "arguments.text"


async def test_an_attempt_waits_for_those_beside_it_without_its_place(tmp_path: Path) -> None:
    """With one place, an attempt that kept it while it waits would wait for ever."""
    place = anyio.Semaphore(1)
    both = Meeting(2)

    async def quick(hand: Hand) -> None:
        await both.come()

    async def slow(hand: Hand) -> None:
        place.release()  # as one does that waits to be tried again
        await both.come()
        await place.acquire()
        await hand.write("at last")

    @asynccontextmanager
    async def away() -> AsyncIterator[None]:
        place.release()
        yield
        await place.acquire()

    setting = SharedSetting(tmp_path, {"slow": slow, "quick": quick})

    async def make(case: str, fields: Mapping[str, Any]) -> None:
        async with place:
            one = setting.job(case, **dict(fields))
            setting.finished[case] = await collect(one, setting.hub, setting.writer, away=away)

    async with setting.open(), anyio.create_task_group() as tasks:
        tasks.start_soon(make, "slow", expect("at last"))
        tasks.start_soon(make, "quick", expect())
    assert setting.verdict("slow") is setting.verdict("quick") is TrialVerdict.PASSED


async def test_an_attempt_cut_off_by_its_deadline_keeps_what_its_trace_has(
    tmp_path: Path,
) -> None:
    async def hangs(hand: Hand) -> None:
        await hand.write("before")
        await anyio.sleep_forever()

    setting = SharedSetting(tmp_path, {"hangs": hangs})
    async with setting.open():
        await setting.make("hangs", {"timeout_s": 0.5})
    ending = setting.finished["hangs"].record.ending
    assert isinstance(ending, InfrastructureFailure)
    assert ending.broke is Broke.DEADLINE
    assert setting.stored_texts("hangs") == ["before"]
    assert setting.nobodys() == []


async def test_an_attempt_cut_short_while_it_waits_for_others_stores_its_writes(
    tmp_path: Path,
) -> None:
    met = Meeting(2)
    ended = anyio.Event()

    async def quick(hand: Hand) -> None:
        await met.come()
        await hand.write("quick")
        ended.set()

    async def hangs(hand: Hand) -> None:
        await met.come()
        await anyio.sleep_forever()

    setting = SharedSetting(tmp_path, {"quick": quick, "hangs": hangs})
    async with setting.open(), anyio.create_task_group() as tasks:
        tasks.start_soon(setting.make, "quick")
        tasks.start_soon(setting.make, "hangs")
        await ended.wait()
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    stored = json.loads(setting.writer.layout.trace(AttemptId("default", "quick", 0)).read_bytes())
    assert stored["ending"]["broke"] == "collection"
    assert setting.stored_texts("quick") == ["quick"]
    assert setting.nobodys() == []


async def test_the_record_of_a_killed_process_is_there_and_nobodys(tmp_path: Path) -> None:
    seen: list[list[str]] = []

    async def run(hand: Hand) -> None:
        await hand.write("recorded")
        seen.append(setting.nobodys())  # as whoever reads the files after a kill sees it

    setting = SharedSetting(tmp_path, {"one": run})
    async with setting.open():
        await setting.make("one")
    assert seen == [["recorded"]]
    assert setting.nobodys() == []
    assert setting.stored_texts("one") == ["recorded"]
