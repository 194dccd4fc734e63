"""Expected calls against the calls that were made, one to one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.grading.matching import (
    ActualCall,
    ExpectedCall,
    MatchResult,
    Order,
    call_fits,
    match_calls,
)
from pytest_mst.grading.pairing import most_pairs


def want(
    tool: str = "create", server: str | None = None, *, required: bool = True, **arguments: Any
) -> ExpectedCall:
    return ExpectedCall(tool, server, arguments, required)


def made(tool: str = "create", server: str | None = "chat", **arguments: Any) -> ActualCall:
    return ActualCall(tool, server, arguments)


@pytest.mark.parametrize("expected", list(permutations([want(x=1), want(x=1, y=2)])))
@pytest.mark.parametrize("actual", list(permutations([made(x=1), made(x=1, y=2)])))
def test_no_expectation_takes_the_call_that_a_stricter_one_needs(
    expected: Sequence[ExpectedCall], actual: Sequence[ActualCall]
) -> None:
    assert match_calls(expected, actual, exclusive=True).matched


def test_two_equal_calls_meet_two_equal_expectations() -> None:
    ping = want("ping")
    assert match_calls([ping, ping], [made("ping"), made("ping")], exclusive=True).matched
    assert match_calls([ping, ping], [made("ping")]).share == 0.5


def test_a_missing_required_call_is_unmet() -> None:
    result = match_calls([want("transfer")], [])
    assert not result.matched
    assert result.unmet[0].reason("write") == (
        "expected write transfer {}, but there was none at all"
    )


def test_a_call_on_another_server_is_another_call() -> None:
    result = match_calls([want("send_email", "mail_a")], [made("send_email", "mail_b")])
    (unmet,) = result.unmet
    assert unmet.mismatch is not None
    assert (unmet.mismatch.path, unmet.mismatch.expected, unmet.mismatch.found) == (
        "server",
        "mail_a",
        "mail_b",
    )


def test_a_call_that_is_not_required_may_be_made_or_not() -> None:
    expected = [want("create"), want("log", required=False)]
    assert match_calls(expected, [made("create")], exclusive=True).matched
    assert match_calls(expected, [made("log"), made("create")], exclusive=True).matched
    assert not match_calls(expected, [made("log")], exclusive=True).matched


def test_a_required_call_goes_before_one_that_is_not() -> None:
    expected = [want(required=False), want()]
    assert match_calls(expected, [made()]).matched
    assert match_calls(expected, [made()], "strict").matched


def test_a_call_that_is_left_over_matters_only_to_exclusive() -> None:
    calls = [made("create"), made("delete")]
    assert match_calls([want("create")], calls).matched
    result = match_calls([want("create")], calls, exclusive=True)
    assert not result.matched
    assert result.surplus == (1,)


def test_strict_order_needs_the_calls_in_sequence() -> None:
    expected = [want("a"), want("b")]
    assert match_calls(expected, [made("x"), made("a"), made("x"), made("b")], "strict").matched
    result = match_calls(expected, [made("b"), made("a")], "strict")
    assert not result.matched
    assert "out of order" in result.unmet[0].reason("write")


@pytest.mark.parametrize(
    ("calls", "nearest", "path"),
    [
        ([made("other", x=1, y=2), made(x=7, y=8)], 1, "arguments.x"),
        ([made(server="docs", x=1, y=2), made(x=7, y=8)], 1, "arguments.x"),
        ([made(x=7, y=8), made(x=1, y=8), made(x=7, y=2)], 1, "arguments.y"),
        ([made(x=1, y=3), made(x=1, y=4)], 0, "arguments.y"),
        ([made("other", x=7), made("other", x=1, y=2)], 1, "tool"),
    ],
)
def test_the_nearest_call_has_the_same_tool_then_the_server_then_the_fewest_differences(
    calls: list[ActualCall], nearest: int, path: str
) -> None:
    (unmet,) = match_calls([want("create", "chat", x=1, y=2)], calls).unmet
    assert unmet.nearest is calls[nearest]
    assert unmet.mismatch is not None
    assert unmet.mismatch.path == path


def test_a_call_that_another_expectation_needs_is_named_as_taken() -> None:
    (unmet,) = match_calls([want(x=1), want(x=1)], [made(x=1)]).unmet
    assert unmet.taken
    assert "too few writes match" in unmet.reason("write")


def test_a_call_not_yet_paired_is_nearer_than_one_that_is() -> None:
    (unmet,) = match_calls([want(x=1), want(x=1)], [made(x=1), made(x=2)]).unmet
    assert unmet.nearest == made(x=2)


def test_the_reason_shows_wanted_nearest_and_difference() -> None:
    result = match_calls(
        [want("post", "chat", channel="#team")], [made("post", channel="#general", text="hi")]
    )
    assert result.unmet[0].reason("write") == (
        'no write matches chat.post {"channel": "#team"}; the nearest is '
        'chat.post {"channel": "#general", "text": "hi"}: '
        'at arguments.channel expected string "#team", found string "#general"'
    )


KEYS = st.dictionaries(st.sampled_from("xy"), st.integers(0, 1), max_size=2)
EXPECTED = st.lists(
    st.builds(
        ExpectedCall,
        tool=st.sampled_from(["a", "b"]),
        server=st.sampled_from([None, "s", "t"]),
        arguments=KEYS,
        required=st.booleans(),
    ),
    max_size=4,
)
ACTUAL = st.lists(
    st.builds(
        ActualCall,
        tool=st.sampled_from(["a", "b"]),
        server=st.sampled_from(["s", "t"]),
        arguments=KEYS,
    ),
    max_size=4,
)


def _every_matching(
    expected: Sequence[ExpectedCall], actual: Sequence[ActualCall], order: Order
) -> list[dict[int, int]]:
    """All matchings, by trying each choice of positions on both sides."""
    found = []
    for size in range(min(len(expected), len(actual)) + 1):
        choose = permutations if order == "any" else combinations
        for lefts in combinations(range(len(expected)), size):
            for rights in choose(range(len(actual)), size):
                pairs = dict(zip(lefts, rights, strict=True))
                if all(call_fits(expected[i], actual[j]) for i, j in pairs.items()):
                    found.append(pairs)
    return found


def _counts(expected: Sequence[ExpectedCall], pairs: dict[int, int]) -> tuple[int, int]:
    return sum(expected[left].required for left in pairs), len(pairs)


@given(EXPECTED, ACTUAL, st.sampled_from(["any", "strict"]), st.booleans())
def test_no_other_matching_is_better(
    expected: list[ExpectedCall], actual: list[ActualCall], order: Order, exclusive: bool
) -> None:
    result = match_calls(expected, actual, order, exclusive=exclusive)
    every = _every_matching(expected, actual, order)
    assert dict(sorted(result.pairs.items())) in every
    assert _counts(expected, result.pairs) == max(_counts(expected, pairs) for pairs in every)
    required = {left for left, call in enumerate(expected) if call.required}
    assert result.matched == any(
        required <= pairs.keys() and (not exclusive or len(pairs) == len(actual)) for pairs in every
    )


@given(EXPECTED, ACTUAL, st.booleans(), st.data())
def test_the_result_does_not_depend_on_what_stands_first(
    expected: list[ExpectedCall], actual: list[ActualCall], exclusive: bool, data: st.DataObject
) -> None:
    def seen(result: MatchResult) -> tuple[bool, float | None, int, int]:
        return result.matched, result.share, len(result.unmet), len(result.surplus)

    shuffled = match_calls(
        data.draw(st.permutations(expected)),
        data.draw(st.permutations(actual)),
        exclusive=exclusive,
    )
    assert seen(shuffled) == seen(match_calls(expected, actual, exclusive=exclusive))


@given(EXPECTED, ACTUAL, st.sampled_from(["any", "strict"]))
def test_pairs_and_what_is_left_over_add_up(
    expected: list[ExpectedCall], actual: list[ActualCall], order: Order
) -> None:
    result = match_calls(expected, actual, order)
    assert len(result.surplus) + len(result.pairs) == len(actual)
    required = sum(expected[left].required for left in result.pairs)
    assert len(result.unmet) + required == result.required


def test_many_calls_are_paired_through_a_long_chain() -> None:
    size = 1500
    chain = [[left, left + 1] if left else [0] for left in reversed(range(size))]
    assert len(most_pairs(chain)) == size
