"""Messages as lines: everything that JSON can hold comes back as it was."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_mst.proxy.pipe import UnsendableError, decode, encode

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | ANY_TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner),
    max_leaves=10,
)


@given(JSON)
@settings(deadline=None, max_examples=60)
def test_any_json_value_survives_a_line(value: Any) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "result": {"value": value}}
    line = encode(message)
    assert b"\n" not in line
    assert decode(line) == ([message], None)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"x"])
def test_what_json_cannot_hold_is_not_sent(value: object) -> None:
    with pytest.raises(UnsendableError):
        encode({"id": 1, "result": {"value": value}})


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"My server v1.2", "not JSON"),
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"1", "not JSON-RPC"),
        (b"[]", "not JSON-RPC"),
        (b'{"level": "info"}', "not JSON-RPC"),
        (b'{"id": 1}', "not JSON-RPC"),
    ],
)
def test_a_line_that_is_no_message_is_said_to_be_none(line: bytes, problem: str) -> None:
    assert decode(line) == ([], problem)


def test_bytes_that_are_not_utf8_are_replaced_and_noted() -> None:
    (message,), problem = decode(b'{"id":1,"result":{"text":"a\xffb"}}')
    assert message["result"] == {"text": "a\ufffdb"}
    assert problem == "not UTF-8"


def test_a_batch_and_a_byte_order_mark_are_read() -> None:
    messages, problem = decode(b'\xef\xbb\xbf[{"method":"a"},{"method":"b"}]')
    assert ([one["method"] for one in messages], problem) == (["a", "b"], None)
