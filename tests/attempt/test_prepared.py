"""What the load check found, on its way to another process."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_mst.attempt.prepared import ServerState, servers_from_json, servers_to_json
from pytest_mst.domain.ending import Broke, InfrastructureFailure, Scope
from pytest_mst.domain.eval_config import StdioServer
from tests.attempt.evals import state
from tests.attempt.setting import small_config

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
FAILURES = st.builds(
    InfrastructureFailure,
    st.sampled_from(Broke),
    TEXTS,
    st.booleans(),
    st.sampled_from(Scope),
    st.none() | st.booleans(),
    st.none() | TEXTS,
)
STATES = st.builds(
    ServerState,
    TEXTS,
    st.dictionaries(TEXTS, st.dictionaries(TEXTS, JSON, max_size=3), max_size=3),
    st.none() | TEXTS,
    st.none() | TEXTS,
    st.none() | TEXTS,
    st.none() | FAILURES,
)


@settings(max_examples=40)
@given(st.lists(STATES, max_size=3, unique_by=lambda one: one.label))
def test_what_is_handed_on_is_what_was_found(states: list[ServerState]) -> None:
    servers = {one.label: one for one in states}
    read = servers_from_json(servers_to_json(servers))
    assert read == servers
    assert [list(one.tools) for one in read.values()] == [list(one.tools) for one in states]


def test_it_is_plain_text_also_where_a_server_sends_odd_characters() -> None:
    odd = ServerState("a", {"\ud83d": {"description": "\x1b[31m\u2028"}})
    text = servers_to_json({"a": odd})
    assert text.isascii()
    assert servers_from_json(text) == {"a": odd}
    assert json.loads(text)[0]["failure"] is None


def test_the_configs_word_on_tools_is_laid_over_what_the_server_says() -> None:
    def tools(**keys: Any) -> tuple[str, ...]:
        config = StdioServer.model_validate(small_config(**keys))
        return state("notes").tools_for(config).writes

    assert tools() == ("write_note", "purge", "write_slowly")
    assert tools(readOnlyTools=["purge"]) == ("write_note", "write_slowly")
    assert tools(alwaysWriteTools=["fail"]) == ("fail", "write_note", "purge", "write_slowly")
