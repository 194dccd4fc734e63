"""The comparison itself: it sees every difference, and an exception that has gone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.proxy.wire import npm
from tests.proxy.wire.conversation import Ask
from tests.proxy.wire.line import members, written_anew
from tests.proxy.wire.servers import ALL
from tests.proxy.wire.test_wire import compare

MEMORY = next(server for server in ALL if server.name == "memory")
SAME = {"tools": "a", "unknown tool": "isError", "unknown method": "no", "call of a number": "no"}
SAME |= {"call without a name": "no", "call without parameters": "no", "write": "done"}
OURS = {
    **SAME,
    "unknown tool": "-32602",
    "unknown method": "-32601",
    "call of a number": "names no tool",
    "call without a name": "names no tool",
    "call without parameters": "names no tool",
    "write": "NOT executed",
}
ASKED = [Ask(what, "x") for what in SAME]
STOPPED = [Ask("write", "tools/call")]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_what_is_as_it_should_be_passes() -> None:
    compare(MEMORY, "relay", ASKED, STOPPED, (SAME, OURS))


@pytest.mark.parametrize(
    "through",
    [
        {**OURS, "tools": "b"},
        {**OURS, "notification": "more"},
        {what: text for what, text in OURS.items() if what != "tools"},
        {**OURS, "unknown tool": "isError"},
        {**OURS, "unknown tool": "another answer"},
        {**OURS, "write": "done"},
        {**OURS, "write": "done in another way"},
    ],
    ids=[
        "another answer",
        "one message more",
        "one message less",
        "an exception that has gone",
        "an exception of another kind",
        "a write that was not stopped",
        "a write that was answered as done",
    ],
)
def test_whatever_else_differs_fails(through: dict[str, str]) -> None:
    with pytest.raises(AssertionError):
        compare(MEMORY, "relay", ASKED, STOPPED, (SAME, through))


@given(st.dictionaries(st.text(), JSON, min_size=1, max_size=4), st.sampled_from([None, 1]))
def test_a_message_is_cut_into_the_text_of_its_members(
    message: dict[str, Any], indent: int | None
) -> None:
    text = json.dumps(message, indent=indent)
    cut = members(text)
    assert {name: json.loads(one) for name, one in cut.items()} == message
    assert all(one in text for one in cut.values())


@pytest.mark.parametrize(
    ("one", "other"),
    [("1", "1.0"), ('{"a":1,"b":2}', '{"b":2,"a":1}'), ("null", "{}"), ('"\u00e9"', '"e\u0301"')],
)
def test_what_is_written_anew_is_told_apart_all_the_same(one: str, other: str) -> None:
    assert written_anew(one) != written_anew(other)


def test_without_npm_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(npm.NotThereError, match=r"install Node\.js"):
        npm.install(tmp_path / "kept")


def test_an_npm_that_cannot_install_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("npm", "node"):
        (tmp_path / name).write_text(
            "#!/bin/sh\necho asked >> asked\necho no network >&2\nexit 1\n"
        )
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for _ in range(2):
        with pytest.raises(npm.NotThereError, match=r"\(no network\): it needs a registry"):
            npm.install(tmp_path / "kept")
    assert (tmp_path / "kept" / "asked").read_text() == "asked\n"
