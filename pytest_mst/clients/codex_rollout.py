"""The file in which Codex keeps a session: what its lines on standard output leave out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_mst.clients.codex_transcript import KnownCall

_FILE_LIMIT_BYTES = 256 * 2**20
"""What no session is longer than; of one that is, nothing is read."""


@dataclass(frozen=True, slots=True)
class TypedError:
    """The type of what a turn failed for, as Codex has it (`codex_error_info`)."""

    name: str
    status: int | None = None
    """The HTTP status that goes with it, where one does."""


@dataclass(slots=True)
class Rollout:
    """What the file says."""

    calls: list[KnownCall] = field(default_factory=list)
    """The calls of servers' tools, in the order in which they ended."""
    error: TypedError | None = None
    """What the turn failed for."""

    @classmethod
    def read(cls, home: Path, thread: str | None, names: Mapping[str, str]) -> Rollout:
        """Read a session's file; what is not there, or not whole, is left out.

        Args:
            home: Codex's own folder.
            thread: the session's id.
            names: the labels of the servers, by the names that the client knows them by.

        """
        found = cls()
        for path in sorted((home / "sessions").rglob("rollout-*.jsonl")):
            if thread is not None and path.stem.endswith(f"-{thread}"):
                for line in _lines(path):
                    found._take(line, names)
        return found

    def _take(self, line: Mapping[str, Any], names: Mapping[str, str]) -> None:
        said = line.get("payload")
        if line.get("type") != "event_msg" or not isinstance(said, Mapping):
            return
        item = said.get("item")
        match said.get("type"):
            case "item_completed" if isinstance(item, Mapping):
                self._item(item, names)
            case "task_complete":
                failed = said.get("error")
                info = failed.get("codex_error_info") if isinstance(failed, Mapping) else None
                self.error = typed_error(info)
            case _:
                pass

    def _item(self, item: Mapping[str, Any], names: Mapping[str, str]) -> None:
        key, server = item.get("id"), names.get(str(item.get("server")))
        if item.get("type") == "McpToolCall" and isinstance(key, str) and server is not None:
            call = KnownCall(key, server, str(item.get("tool")), item.get("arguments"))
            self.calls.append(call)


def typed_error(info: object) -> TypedError | None:
    """Read a `codex_error_info`: a name, or an object of one name with an HTTP status in it."""
    if isinstance(info, str):
        return TypedError(info)
    if not isinstance(info, Mapping) or len(info) != 1:
        return None
    ((name, more),) = info.items()
    status = more.get("http_status_code") if isinstance(more, Mapping) else None
    whole = isinstance(status, int) and not isinstance(status, bool)
    return TypedError(str(name), status if whole else None)


def _lines(path: Path) -> Iterator[Mapping[str, Any]]:
    if path.stat().st_size > _FILE_LIMIT_BYTES:
        return
    for line in path.read_bytes().splitlines():
        try:
            read = json.loads(line)
        except ValueError:  # the last one, of a program that was killed
            continue
        if isinstance(read, Mapping):
            yield read
