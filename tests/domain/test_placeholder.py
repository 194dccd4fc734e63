"""`{{trial.id}}`, wherever it is written."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.domain.placeholder import TRIAL_ID, filled

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def test_it_is_filled_in_every_text_at_any_depth_keys_too() -> None:
    written: Any = {"a": ["x {{trial.id}}", {"{{trial.id}}": ("{{trial.id}}{{trial.id}}", 1)}]}
    assert filled(written, "mst1") == {"a": ["x mst1", {"mst1": ("mst1mst1", 1)}]}
    assert written["a"][0] == "x {{trial.id}}"


@given(JSON)
def test_what_does_not_hold_it_stays_equal(value: Any) -> None:
    if TRIAL_ID not in repr(value):
        assert filled(value, "mst1") == value


def test_what_only_looks_like_it_is_left_alone() -> None:
    assert filled("{{ trial.id }} {{trial.id} {{Trial.id}}", "m") == (
        "{{ trial.id }} {{trial.id} {{Trial.id}}"
    )
