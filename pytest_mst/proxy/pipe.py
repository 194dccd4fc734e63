"""A two-way stream of JSON-RPC messages, whatever carries them."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Message: TypeAlias = dict[str, Any]
"""A JSON-RPC message as `json.loads` gives it: integers exact, lone surrogates kept."""


class PipeClosedError(Exception):
    """Nothing more can be sent or received."""


class UnsendableError(ValueError):
    """A message holds something that JSON cannot."""


@dataclass(frozen=True, slots=True)
class PipeEnding:
    """What is known of why a pipe ended."""

    reason: str
    """For people, as the end of a sentence that begins with the server's name."""
    exit_code: int | None = None
    """Of a process that ended; negative: the signal it ended by."""
    stderr_tail: str = ""
    unreadable: tuple[str, ...] = ()
    """The first lines that came and were not messages, cut short."""
    refused: bool = False
    """The other side did not let us in, or was not there."""
    absent: bool = False
    """The other side was not there when it was asked, so that no question of ours ended it."""


class Pipe(ABC):
    """A two-way stream of messages to one server."""

    @abstractmethod
    async def send(self, message: Message) -> None:
        """Send one message.

        Raises:
            PipeClosedError: nothing can be sent any more.
            UnsendableError: the message cannot be written as JSON.

        """

    @abstractmethod
    async def receive(self) -> Message:
        """Wait for the next message.

        Raises:
            PipeClosedError: there is no next one; why it ended is known by then.

        """

    @abstractmethod
    def ending(self) -> PipeEnding:
        """Say what is known of the other side's end."""

    def agreed_on(self, revision: str) -> None:  # noqa: B027  most transports repeat nothing
        """Take note of the protocol revision, for transports that repeat it."""

    def listed(self, tools: Mapping[str, Mapping[str, Any]]) -> None:  # noqa: B027  as above
        """Take note of the tools, for transports that repeat arguments outside the message."""


def encode(message: Message) -> bytes:
    r"""Write a message as one line of UTF-8, `\n` not included.

    Text with lone surrogates, which UTF-8 cannot hold, is written with JSON's own escapes.

    Raises:
        UnsendableError: the message holds something that JSON cannot, such as NaN.

    """
    try:
        text = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        msg = f"cannot be written as JSON: {error}"
        raise UnsendableError(msg) from error


def decode(line: bytes) -> tuple[list[Message], str | None]:
    """Read one line: the messages in it, and what is wrong with it where something is.

    Bytes that are not UTF-8 are replaced, and that is said. A line that is not JSON-RPC gives no
    message. A batch (revision 2025-03-26) gives several.
    """
    problem = None
    try:
        text = line.decode()
    except UnicodeDecodeError:
        text = line.decode(errors="replace")
        problem = "not UTF-8"
    try:
        value = json.loads(text.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return [], "not JSON"
    messages = [one for one in (value if isinstance(value, list) else [value]) if _is_message(one)]
    return messages, problem if messages else "not JSON-RPC"


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and (
        isinstance(value.get("method"), str)
        or ("id" in value and ("result" in value or "error" in value))
    )
