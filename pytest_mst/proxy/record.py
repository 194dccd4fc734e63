"""What went through one attempt's boundary: its calls, and the record of its writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pytest_mst.domain.ending import Broke, InfrastructureError
from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.json_value import JsonObject, snapshot
from pytest_mst.domain.run import utc_text
from pytest_mst.domain.write import Refusal, WriteEntry, WriteMode, WriteTarget


@dataclass(frozen=True, slots=True)
class ObservedCall:
    """One tool call that reached the boundary, forwarded or not."""

    server: str
    tool: str
    arguments: JsonObject
    """As sent; `{}` where the client sent none."""
    join_id: str | None = None
    is_read: bool = False
    result: Mapping[str, Any] | None = None
    """What the client got, `{"error": ...}` for a protocol error; `None` while it waits."""
    is_error: bool | None = None


class UnrecordedError(InfrastructureError):
    """An entry could not be stored, so that its call must not be answered as done."""


class CallRecord:
    """The calls and the writes of one attempt, in order."""

    def __init__(self, sink: Callable[[WriteEntry], None]) -> None:
        """Start empty.

        Args:
            sink: stores an entry before it returns; raises `StoreError` or `OSError` where it
                cannot.

        """
        self._sink = sink
        self.calls: list[ObservedCall] = []
        self.entries: list[WriteEntry] = []

    def begin(self, server: str, tool: str, arguments: object, join_id: str | None) -> int:
        """Take note of a call; gives its number."""
        given: JsonObject = arguments if isinstance(arguments, Mapping) else {}
        self.calls.append(ObservedCall(server, tool, given, join_id))
        return len(self.calls) - 1

    def finish(self, call: int, result: Mapping[str, Any], *, is_read: bool) -> None:
        """Take note of what the client got."""
        is_error = "error" in result or result.get("isError") is True
        self.calls[call] = replace(
            self.calls[call], result=result, is_error=is_error, is_read=is_read
        )

    def write(
        self,
        call: int,
        reply: Mapping[str, Any],
        mode: WriteMode,
        *,
        targets: Sequence[WriteTarget] = (),
        unparsed: bool = False,
        refused: Refusal | None = None,
        unclassified: bool = False,
    ) -> None:
        """Record a write before its reply leaves: one entry, or one for each target.

        Raises:
            UnrecordedError: it cannot be stored, and so is not to be answered as done.

        """
        observed, kept = self.calls[call], snapshot(reply)
        for target in targets or (None,):
            self._store(
                WriteEntry(
                    seq=len(self.entries),
                    call_seq=call,
                    time=utc_text(datetime.now(UTC)),
                    server=observed.server,
                    tool=observed.tool,
                    arguments=observed.arguments,
                    reply=kept,
                    mode=mode,
                    target=target,
                    unparsed=unparsed,
                    refused=refused,
                    unclassified=unclassified,
                    join_id=observed.join_id,
                )
            )

    def _store(self, entry: WriteEntry) -> None:
        try:
            self._sink(entry)
        except (StoreError, OSError, ValueError, TypeError, RecursionError) as error:
            reason = f"the write record cannot be stored: {error}; free the disk or mend its folder"
            raise UnrecordedError(Broke.COLLECTION, reason, retryable=True) from error
        self.entries.append(entry)
