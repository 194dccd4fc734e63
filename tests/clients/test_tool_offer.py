"""Tools under names that every API takes, and each finds back to its server."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.clients.tool_offer import NAME_LIMIT, offered_tools

VALID = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


def test_a_tool_keeps_its_name_where_it_is_the_only_one_of_it() -> None:
    offered = offered_tools(
        [("a", [{"name": "read"}, {"name": "post"}]), ("b", [{"name": "read"}])]
    )
    assert [(one.name, one.server, one.tool) for one in offered.values()] == [
        ("a__read", "a", "read"),
        ("post", "a", "post"),
        ("b__read", "b", "read"),
    ]


def test_what_a_server_says_of_a_tool_is_handed_on_as_it_is() -> None:
    schema = {"type": "object", "properties": {"id": {"type": "string"}}, "x-own": 1}
    (tool,) = offered_tools(
        [("a", [{"name": "read", "title": "Read", "description": "Reads", "inputSchema": schema}])]
    ).values()
    assert (tool.description, tool.schema) == ("Reads", schema)


@given(
    st.lists(
        st.tuples(st.text(max_size=80), st.lists(st.text(max_size=80), max_size=4, unique=True)),
        max_size=4,
        unique_by=lambda one: one[0],
    )
)
def test_every_tool_has_a_valid_name_of_its_own(servers: list[tuple[str, list[str]]]) -> None:
    offered = offered_tools((label, [{"name": one} for one in names]) for label, names in servers)
    assert all(VALID.fullmatch(name) and len(name) <= NAME_LIMIT for name in offered)
    found = {(one.server, one.tool) for one in offered.values()}
    assert found == {(label, name) for label, names in servers for name in names}
