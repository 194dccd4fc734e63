"""Where an answer through the proxy may differ from the server's own, and why. Nothing else may.

Stopped writes are not here: which calls those are is known from the tools' annotations. A
difference that is not in these tables fails the comparison, and so does an entry that is in them
and does not occur.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tests.proxy.wire.conversation import UNASKED_FOR

TS_1 = ("everything", "filesystem", "memory")
"""Servers on the first TypeScript SDK."""


@dataclass(frozen=True)
class Varies:
    """What is another in each conversation, so that it is taken out of both."""

    servers: tuple[str, ...]
    pattern: str
    why: str


@dataclass(frozen=True)
class Differs:
    """An answer that is the proxy's own."""

    what: str
    """The name of the request."""
    servers: tuple[str, ...]
    """None: all of them that are asked."""
    through: str
    """What is to be found in the answer through the proxy; empty where there is none."""
    why: str
    front: str | None = None
    """The only front where it occurs; all where it is `None`."""


VARIES = [
    Varies(("time",), r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "the clock"),
    Varies(("time",), r"(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day", "the clock"),
    Varies(("everything",), r"created at \d+:\d\d:\d\d [AP]M", "the clock"),
    Varies(("everything",), r"UmVzb3VyY2UgMTog[A-Za-z0-9+/=]+", "the clock, in a blob"),
    Varies(("filesystem",), r"(created|modified|accessed): [^\\]+", "times of files made anew"),
]

_NO_NAME = (
    "a call that names no tool cannot be told from a write, and no server does anything with it"
)
_LIST_CHANGED = (
    "told right after the handshake, before there is a session; the client's first list is new"
)

DIFFERS = [
    Differs("unknown tool", TS_1, "-32602", "what is not listed is a write and is not forwarded"),
    Differs("unknown method", TS_1, "-32601", "what nobody knows may write and is not forwarded"),
    Differs("call without a name", (), "names no tool", _NO_NAME),
    Differs("call of a number", (), "names no tool|mcp-name header", _NO_NAME),
    Differs("call without parameters", (), "names no tool", _NO_NAME),
    Differs(
        f"{UNASKED_FOR}: notifications/tools/list_changed",
        ("everything", "everything-asks-back"),
        "",
        _LIST_CHANGED,
    ),
    Differs(
        f"{UNASKED_FOR}: notifications/resources/list_changed",
        ("everything",),
        "",
        "what a stopped write would have changed has not changed",
    ),
    Differs(
        f"{UNASKED_FOR}: notifications/message",
        ("everything",),
        "",
        "a stopped write would have begun them",
    ),
    Differs(
        "surrogate, once",
        ("wild",),
        "\ufffd",
        "HTTP carries UTF-8, and the SDK's server writes no escapes for what that cannot hold",
        front="http",
    ),
]


def without_what_varies(server: str, text: str, seen: set[Varies]) -> str:
    """Take out of a text what is another in each conversation; notes what was found."""
    for one in VARIES:
        if server in one.servers:
            text, count = re.subn(one.pattern, "<varies>", text)
            if count:
                seen.add(one)
    return text


def differing(server: str, front: str, asked: Iterable[str]) -> dict[str, Differs]:
    """Give the answers of one conversation that are the proxy's own."""
    there = {*asked}
    return {
        one.what: one
        for one in DIFFERS
        if (server in one.servers or (not one.servers and one.what in there))
        and one.front in (None, front)
    }
