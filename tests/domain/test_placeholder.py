"""`{{trial.id}}`, wherever it is written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.domain.placeholder import INPUT, TRIAL_ID, Misspelt, filled, misspelt

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


@pytest.mark.parametrize(
    "written",
    [
        "{{ trial.id }}",
        "{{trail.id}}",
        "{{trialId}}",
        "{{trial_id}}",
        "{{Trial.ID}}",
        "{{trial}}",
        "{{trial.id\n}}",
    ],
)
def test_a_slip_in_it_is_found_wherever_it_is(written: str) -> None:
    value = {"a": ["{{trial.id}}", {f"x {written}": f"{written} {{{{trial.id}}}}"}]}
    path = ("a", 1, f"x {written}")
    assert list(misspelt(value)) == [Misspelt(path, written, TRIAL_ID)] * 2


@pytest.mark.parametrize(
    "text",
    [
        "{{trial.id}}",
        "{{{trial.id}}}",
        "{{serial.id}}",
        "{{input}}",
        "{{ user.name }}",
        "{{}}",
        "{trail.id}",
        "${{ github.sha }}",
        '{"a": {"b": {}}}',
    ],
)
def test_other_braces_are_text(text: str) -> None:
    assert list(misspelt(text)) == []


def test_the_nearest_of_several_is_meant() -> None:
    found = misspelt("{{ input }} {{inputs}} {{trail.id}} {{input}}", (INPUT, TRIAL_ID))
    assert [one.meant for one in found] == [INPUT, INPUT, TRIAL_ID]
