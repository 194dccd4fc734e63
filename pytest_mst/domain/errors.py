"""Errors that a user can mend: where, what was found, what is valid, and the way out.

MstError
├── EvalFileError      an eval config or a dataset is wrong
├── LoadCheckError     a server's writes are not accounted for
├── SelectionError     an option names something that is not there
├── MarkerError        a marker on a test function is wrong
├── RegistrationError  a client or a judge cannot be registered
├── OptionsError       `clientOptions` are not what the client takes
├── ResumeError        a stored run cannot be taken up as it is asked for
└── StoreError         a run cannot be written or read
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file."""

    file: str
    """As the user would write it: relative to the working folder where it lies below it."""
    line: int | None = None
    """1-based."""
    key: str | None = None
    """The path of keys, such as `cases[2].expected.writes`."""

    def __str__(self) -> str:
        """Write the place as editors and terminals link it."""
        line = "" if self.line is None else f":{self.line}"
        key = f" ({self.key})" if self.key else ""
        return f"{self.file}{line}{key}"


class MstError(Exception):
    """Base of the errors that a user can mend; `plugin` turns them into exit code 4."""


class EvalFileError(MstError):
    """An eval config or a dataset is wrong."""

    def __init__(self, place: Place, problem: str, remedy: str | None = None) -> None:
        """Build the message from where, what, and the way out."""
        self.place = place
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{place}: {problem}" + (f"; {remedy}" if remedy else ""))


class EvalFileErrors(MstError):
    """Several things are wrong in the files of one selection; all are told at once."""

    def __init__(self, errors: Sequence[EvalFileError]) -> None:
        """Join the messages, a line each."""
        self.errors = tuple(errors)
        super().__init__("\n".join(str(error) for error in errors))


class LoadCheckError(MstError):
    """A server's writes are not accounted for, so nothing is started."""

    def __init__(
        self,
        place: Place,
        problem: str,
        *,
        server: str | None = None,
        tools: Sequence[str] = (),
        remedy: str | None = None,
    ) -> None:
        """Build the message; the server and its tools are kept as fields."""
        self.place = place
        self.problem = problem
        self.server = server
        self.tools = tuple(tools)
        self.remedy = remedy
        super().__init__(f"{place}: {problem}" + (f"; {remedy}" if remedy else ""))


class LoadCheckErrors(MstError):
    """Several things stand against live writes; all are told at once."""

    def __init__(self, errors: Sequence[LoadCheckError]) -> None:
        """Join the messages, a line each."""
        self.errors = tuple(errors)
        super().__init__("\n".join(str(error) for error in errors))


class SelectionError(MstError):
    """An option or a marker names something that is not there."""

    def __init__(self, option: str, given: str, valid: Sequence[str]) -> None:
        """Name what was asked for and what there is."""
        self.option = option
        self.given = given
        self.valid = tuple(valid)
        there = ", ".join(valid) if valid else "none"
        super().__init__(f"{option}: there is no {given!r}; there are: {there}")


class MarkerError(MstError):
    """A marker on a test function is wrong."""

    def __init__(self, test: str, marker: str, problem: str, remedy: str) -> None:
        """Build the message.

        Args:
            test: the test's node id.
            marker: the marker's name.
            problem: what was found.
            remedy: what would be right.

        """
        self.test = test
        self.marker = marker
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{test}: @pytest.mark.{marker} {problem}; {remedy}")


class RegistrationError(MstError):
    """A conftest or a plugin registers what cannot be."""

    def __init__(self, what: str, name: object, problem: str, remedy: str) -> None:
        """Build the message.

        Args:
            what: `client` or `judge`.
            name: the name that it was to have.
            problem: what was found.
            remedy: the way out.

        """
        self.what = what
        self.name = name
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"pytest_mst_register: {what} {name!r} {problem}; {remedy}")


class OptionsError(MstError):
    """`clientOptions` are not what the client takes."""

    def __init__(self, key: str, expected: str) -> None:
        """Build the message.

        Args:
            key: the path of the option below `clientOptions`.
            expected: what it takes, and what was found.

        """
        self.key = key
        self.expected = expected
        super().__init__(f"clientOptions.{key} takes {expected}")


class ResumeError(MstError):
    """A stored run cannot be taken up as it is asked for."""

    def __init__(self, asked: str, problem: str, remedy: str) -> None:
        """Build the message.

        Args:
            asked: the option, and the run where one is known.
            problem: what was found.
            remedy: the way out.

        """
        self.asked = asked
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{asked}: {problem}; {remedy}")


class StoreError(MstError):
    """A run cannot be written or read."""

    def __init__(self, path: str, problem: str, remedy: str | None = None) -> None:
        """Name the path, what went wrong, and the way out."""
        self.path = path
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{path}: {problem}" + (f"; {remedy}" if remedy else ""))
