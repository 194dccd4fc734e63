"""What attempts and their judges used: sums of what is known, and a count of what is not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.domain.score import GraderFailure, Score
from pytest_mst.report.spending import Spending, cost_lines, usd

CLIENT = {"requests": 2, "inputTokens": 100, "outputTokens": 10, "costUsd": 0.25}
JUDGE = {"requests": 1, "inputTokens": 7, "outputTokens": 3, "costUsd": 0.01}


def judged(usage: object) -> Score:
    return Score("correctness", passed=True, details={"usage": usage})


def test_clients_and_judges_are_counted_apart() -> None:
    spent = Spending.of(CLIENT, [judged(JUDGE), GraderFailure("b", "no"), Score("c", passed=True)])
    assert (spent.client_usd, spent.judge_usd, spent.priced, spent.unpriced) == (0.25, 0.01, 2, 0)
    assert spent.total_usd == 0.26
    assert cost_lines(spent) == ["cost $0.26 (clients $0.25, judges $0.01); 107 tokens in, 13 out"]
    assert spent.to_json()["costUsd"] == 0.26


def test_what_has_no_price_is_counted_and_in_no_sum() -> None:
    unpriced = {name: value for name, value in CLIENT.items() if name != "costUsd"}
    spent = Spending.of(CLIENT) + Spending.of(unpriced)
    assert cost_lines(spent) == [
        "cost $0.25; 200 tokens in, 20 out; 1 use without a price left out"
    ]
    alone = Spending.of(unpriced)
    assert alone.total_usd is None
    assert alone.to_json()["costUsd"] is None
    assert cost_lines(alone) == [
        "cost unknown: no price for any of 1 use of models; 100 tokens in, 10 out"
    ]


def test_where_no_model_was_used_nothing_is_said() -> None:
    for usage in (None, {}, {"requests": 0, "modelMs": 3}):
        spent = Spending.of(usage)
        assert cost_lines(spent) == []
        assert spent.to_json() == {}


@given(st.lists(st.floats(0, 100), max_size=5))
def test_the_order_in_which_attempts_are_added_makes_no_difference(costs: list[float]) -> None:
    spendings = [Spending.of({**CLIENT, "costUsd": cost}) for cost in costs]
    forwards = sum(spendings, Spending())
    backwards = sum(reversed(spendings), Spending())
    assert forwards.priced == backwards.priced == len(costs)
    assert abs(forwards.client_usd - backwards.client_usd) < 1e-9


def test_small_amounts_are_not_shown_as_nothing() -> None:
    assert [usd(one) for one in (0, 1.234, 0.0123, 0.00042)] == [
        "$0.00",
        "$1.23",
        "$0.01",
        "$0.00042",
    ]
