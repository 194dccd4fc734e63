"""Dispatchers: which tools a call is really for, and whether it is a write. Asks nobody."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_mst.domain.json_text import NotJsonError, json_from_text
from pytest_mst.domain.json_value import JsonObject, JsonValue, json_type
from pytest_mst.domain.write import ServerTools, WriteTarget

if TYPE_CHECKING:
    from pytest_mst.domain.eval_config import Dispatcher

_PREFIXED = re.compile(r"([^\s:/]+):([^\s/].*)", re.DOTALL)
"""A tool with its server before it."""
MAX_NESTING = 8
"""How many dispatchers deep a target is looked for."""


@dataclass(frozen=True, slots=True)
class CallReading:
    """What a call is for, and whether it may be let through as a read."""

    is_read: bool
    targets: tuple[WriteTarget, ...] = ()
    """The targets of a dispatcher's call, innermost, as they were sent; none of other calls."""
    writes: tuple[WriteTarget, ...] = ()
    """Those of the targets that are not reads."""
    listed: tuple[WriteTarget, ...] = ()
    """Those of the writes that the server lists as tools of its own and that have arguments of
    their own, so that the tool's `inputSchema` has a say in them."""
    unparsed: str | None = None
    """Why the targets of a dispatcher's call cannot be read, where they cannot; then it has none
    and is a write."""


def read_call(tools: ServerTools, tool: str, arguments: object) -> CallReading:
    """Read a call: of a dispatcher, by its targets; of any other tool, by the tool itself.

    A dispatcher's call is a read only when each of its targets is: listed under `readTargets` of
    the dispatcher that was asked for it, word for word, or a tool that the server itself lists
    and that only reads. A tool of another server (`github:create_issue`) is not one that the
    server lists, and neither is the action of a dispatcher without `arguments`. What
    `alwaysWriteTools` names is never a read, and neither is what goes through a dispatcher that the
    server does not list.

    Args:
        tools: of the server that was called.
        tool: the name that was called.
        arguments: as they were sent; `None` where none were.

    """
    if tool not in tools.dispatchers:
        return CallReading(tools.is_read(tool))
    try:
        found = list(_targets(tools, tool, arguments, MAX_NESTING))
    except _UnreadableError as error:
        return CallReading(is_read=False, unparsed=str(error))
    writes = tuple(one.target for one in found if not one.is_read)
    return CallReading(
        is_read=not writes and tool in tools.tools,
        targets=tuple(one.target for one in found),
        writes=writes,
        listed=tuple(one.target for one in found if one.is_listed and not one.is_read),
    )


def is_write(tools: ServerTools, tool: str, arguments: object) -> bool:
    """Tell whether a call is a write, as far as that is known before it is made."""
    return not read_call(tools, tool, arguments).is_read


def with_parsed_text(dispatcher: Dispatcher, arguments: JsonObject) -> JsonObject:
    """Return a dispatcher's arguments with what was sent as JSON text in its place.

    Clients send text where an object is asked for, and servers take it: this is what the call
    means, to be judged by the dispatcher's `inputSchema`. Text that cannot be read counts as an
    empty value of the right type.
    """
    given = dict(arguments)
    for key, empty in ((dispatcher.arguments, {}), (dispatcher.batch, [])):
        text = None if key is None else given.get(key)
        if key is None or not isinstance(text, str):
            continue
        try:
            parsed = _parsed(text, key)
        except _UnreadableError:
            parsed = None
        given[key] = empty if parsed is None else parsed
    return given


class _UnreadableError(Exception):
    """The target of a call, or its arguments, are not where the eval config says they are."""


@dataclass(frozen=True, slots=True)
class _Found:
    target: WriteTarget
    is_read: bool
    is_listed: bool
    """Whether it is a tool that the server lists, with arguments of its own."""


def _targets(tools: ServerTools, tool: str, arguments: object, depth: int) -> Iterator[_Found]:
    """Yield the innermost targets of a dispatcher's call, in order; at least one."""
    if depth == 0:
        msg = f"dispatchers are nested more than {MAX_NESTING} deep"
        raise _UnreadableError(msg)
    dispatcher = tools.dispatchers[tool]
    if not isinstance(arguments, Mapping | None):
        msg = f"the arguments are of type {json_type(arguments)}, not an object"
        raise _UnreadableError(msg)
    always_writes = tool in tools.always_write_tools
    given: JsonObject = arguments or {}
    for call in _calls(dispatcher, given):
        written = call.get(dispatcher.tool)
        if not isinstance(written, str) or not written.strip():
            msg = f"{dispatcher.tool!r} names no target"
            raise _UnreadableError(msg)
        server, name = _split(written, tools)
        key = dispatcher.arguments
        inner = call if key is None else _object(call.get(key), repr(key))
        if server is None and name in tools.dispatchers:
            for found in _targets(tools, name, inner, depth - 1):
                yield replace(found, is_read=found.is_read and not always_writes)
        else:
            named_read = written in dispatcher.read_targets and (
                server is not None or name not in tools.always_write_tools
            )
            # without `arguments` it is an action, not a tool, whatever tool has the same name
            is_tool = server is None and key is not None
            own_read = is_tool and tools.is_read(name)
            yield _Found(
                WriteTarget(name, inner, server),
                is_read=(named_read or own_read) and not always_writes,
                is_listed=is_tool and name in tools.tools,
            )


def _calls(dispatcher: Dispatcher, given: JsonObject) -> list[JsonObject]:
    """Return the calls that one holds: itself, those of its batch, or both."""
    key = dispatcher.batch
    batch = None if key is None else _maybe_text(given, key)
    if key is None or batch is None:
        return [given]
    if not isinstance(batch, list | tuple):
        msg = f"{key!r} is of type {json_type(batch)}, not a list of calls"
        raise _UnreadableError(msg)
    calls = [_object(call, f"a call in {key!r}") for call in batch]
    if any(call.get(key) is not None for call in calls):
        msg = f"a call in {key!r} has {key!r} of its own"
        raise _UnreadableError(msg)
    if given.get(dispatcher.tool) is not None:
        calls.insert(0, given)
    if not calls:
        msg = f"{key!r} has no call"
        raise _UnreadableError(msg)
    return calls


def _split(written: str, tools: ServerTools) -> tuple[str | None, str]:
    """Take `server:tool` apart.

    A tool that the server lists under the whole name is that one, and the path or the address of
    something (`/v1/items:batchGet`, `https://...`) names no server.
    """
    named = None if written in tools.tools else _PREFIXED.fullmatch(written)
    return (None, written) if named is None else (named[1], named[2])


def _object(value: object, what: str) -> JsonObject:
    """Return an object that was sent as one or as JSON text; nothing at all is an empty one."""
    if isinstance(value, str):
        value = _parsed(value, what)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        msg = f"{what} is of type {json_type(value)}, not an object"
        raise _UnreadableError(msg)
    return value


def _maybe_text(given: JsonObject, key: str) -> JsonValue:
    value = given.get(key)
    return _parsed(value, repr(key)) if isinstance(value, str) else value


def _parsed(text: str, what: str) -> JsonValue:
    """Read JSON text; blank text stands for nothing."""
    if not text.strip():
        return None
    try:
        return json_from_text(text)
    except NotJsonError as error:
        msg = f"{what} is text that is not JSON: {error}"
        raise _UnreadableError(msg) from error
