"""Templates of simulated replies."""

from __future__ import annotations

import time
import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_mst.proxy.replies import ReplyFacts, filled, placeholders

FACTS = ReplyFacts({"channel": "#team", "n": 9007199254740993, "deep": {"list": [None, "x"]}}, "t7")


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{{arguments.channel}}", "#team"),
        ("{{arguments.n}}", 9007199254740993),
        ("n={{arguments.n}}", "n=9007199254740993"),
        ("{{ arguments.deep }}", {"list": [None, "x"]}),
        ("{{arguments.deep.list.1}}", "x"),
        ("{{arguments.deep.list.0}}", None),
        ("in {{arguments.channel}} by {{trial.id}}", "in #team by t7"),
        ({"a": ["{{trial.id}}", 1, None, True]}, {"a": ["t7", 1, None, True]}),
        ("{not a placeholder}", "{not a placeholder}"),
        ("{{arguments}}", FACTS.arguments),
    ],
)
def test_placeholders_keep_the_values_own_type(template: Any, value: Any) -> None:
    assert filled(template, FACTS) == value
    assert type(filled(template, FACTS)) is type(value)


def test_time_and_ids_are_made_anew() -> None:
    assert abs(filled("{{unixTime}}", FACTS) - time.time()) < 5
    first, second = filled(["{{uuid}}", "{{uuid}}"], FACTS)
    assert uuid.UUID(first) != uuid.UUID(second)


@pytest.mark.parametrize("name", ["arguments.nope", "arguments.deep.list.9", "arguments.channel.x"])
def test_a_placeholder_without_a_value_is_an_error(name: str) -> None:
    with pytest.raises(KeyError, match="arguments"):
        filled({"a": f"x {{{{{name}}}}}"}, FACTS)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(alphabet="ab {}"),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
@settings(deadline=None, max_examples=60)
def test_what_has_no_placeholder_is_left_as_it_is(template: Any) -> None:
    if not placeholders(template):
        assert filled(template, FACTS) == template
