"""What a command's output says: the answer, its tool calls, its usage and its own error."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pytest_mst.clients.program.options import known_keys, text_option
from pytest_mst.domain.errors import OptionsError
from pytest_mst.domain.json_value import JsonObject, JsonValue, json_type
from pytest_mst.domain.usage import Usage

if TYPE_CHECKING:
    from jsonpath import JSONPath

OutputFormat: TypeAlias = Literal["text", "json", "jsonl"]

_KEYS = ("format", "answer", "error", "toolCalls", "toolResults", "usage")
_CALL_PARTS = {"name": "$.name", "arguments": "$.arguments", "id": "$.id", "server": "$.server"}
_RESULT_PARTS = {"id": "$.id", "output": "$.output", "isError": "$.isError"}
_USAGE_PARTS = ("requests", "inputTokens", "outputTokens", "cacheReadTokens", "costUsd")


@dataclass(frozen=True, slots=True)
class Parts:
    """Where things are in a document: what is found by a path, and what each has where in it."""

    path: str
    parts: Mapping[str, str]

    def of(self, document: JsonValue) -> list[dict[str, JsonValue]]:
        """Return what each thing has, in their order; what is not there has no key."""
        return [
            {name: values[0] for name, path in self.parts.items() if (values := found(path, one))}
            for one in found(self.path, document)
        ]


@dataclass(frozen=True, slots=True)
class OutputReader:
    """How a command's standard output is read; paths are JSONPath (RFC 9535)."""

    format: OutputFormat = "text"
    answer: str | None = None
    """Where the answer is; the last that is found there counts."""
    error: str | None = None
    calls: Parts | None = None
    results: Parts | None = None
    usage: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, value: JsonValue) -> OutputReader:
        """Read the option `output`.

        Raises:
            OptionsError: it is not what it may be.

        """
        if value is None:
            return cls()
        if not isinstance(value, Mapping):
            raise OptionsError(key="output", expected=f"an object, not {json_type(value)}")
        options = _inside("output", value, _KEYS)
        form = text_option(options, "output.format") or "text"
        paths = [key for key in options if key != "output.format" and options[key] is not None]
        match form:
            case "text" if paths:
                raise OptionsError(
                    paths[0],
                    "nothing where output.format is text, which is all "
                    "answer; set output.format to json or jsonl",
                )
            case "text":
                return cls()
            case "json" | "jsonl":
                pass
            case _:
                raise OptionsError(
                    key="output.format", expected=f"one of text, json, jsonl, not {form!r}"
                )
        answer = _path(options, "output.answer")
        if answer is None:
            raise OptionsError(
                key="output.answer", expected="the JSONPath of the answer, such as $.answer"
            )
        return cls(
            form,
            answer,
            _path(options, "output.error"),
            _parts(options, "output.toolCalls", _CALL_PARTS),
            _parts(options, "output.toolResults", _RESULT_PARTS),
            _usage_paths(options.get("output.usage")),
        )

    def read(self, lines: Sequence[str]) -> Output:
        """Return what is found in standard output, all of it or as far as it came."""
        if self.format == "text":
            return Output("\n".join(lines).strip())
        document = _json("\n".join(lines)) if self.format == "json" else _records(lines)
        if document is None or self.answer is None:
            return Output(None)
        answers = [one for one in found(self.answer, document) if one is not None]
        errors = [] if self.error is None else found(self.error, document)
        error = next((one for one in reversed(errors) if one), None)
        return Output(
            _text(answers[-1]) if answers else None,
            None if error is None else _text(error),
            [] if self.calls is None else self.calls.of(document),
            [] if self.results is None else self.results.of(document),
            self._usage(document),
        )

    def _usage(self, document: JsonValue) -> Usage | None:
        values = {name: found(path, document) for name, path in self.usage.items()}
        if not any(values.values()):
            return None
        cost = _number(values.get("costUsd", []))
        return Usage(
            requests=_count(values.get("requests", [])),
            input_tokens=_count(values.get("inputTokens", [])),
            output_tokens=_count(values.get("outputTokens", [])),
            cache_read_tokens=_count(values.get("cacheReadTokens", [])),
            cost_usd=cost,
            cost_source=None if cost is None else "reported",
        )


@dataclass(frozen=True, slots=True)
class Output:
    """What a command said."""

    answer: str | None
    """`None` where there is none to be found: it did not come to its end."""
    error: str | None = None
    calls: Sequence[Mapping[str, JsonValue]] = ()
    results: Sequence[Mapping[str, JsonValue]] = ()
    usage: Usage | None = None


def found(path: str, document: JsonValue) -> list[JsonValue]:
    """Return what a JSONPath finds, in order."""
    from jsonpath import JSONPathError

    try:
        found: Any = _query(path).findall(document)
    except (JSONPathError, RecursionError):  # nested deeper than can be searched: it is not found
        return []
    return list(found)


@lru_cache(maxsize=256)
def _query(path: str) -> JSONPath:
    """Compile a JSONPath.

    Raises:
        ValueError: it is none.

    """
    from jsonpath import JSONPathEnvironment, JSONPathError

    environment = JSONPathEnvironment(strict=True)
    for name in ("match", "search"):  # a regular expression that never ends cannot be stopped
        environment.function_extensions.pop(name, None)
    try:
        query = environment.compile(path)
    except JSONPathError as error:
        msg = "it is none by RFC 9535"
        raise ValueError(msg) from error
    return query  # type: ignore[return-value]  # a compound query is none of the standard's


def _inside(key: str, value: Mapping[str, Any], valid: Sequence[str]) -> JsonObject:
    """Return an object's content by whole keys, so that errors say where it is."""
    options = {f"{key}.{name}": held for name, held in value.items()}
    known_keys(options, [f"{key}.{name}" for name in valid])
    return options


def _path(options: JsonObject, key: str) -> str | None:
    path = text_option(options, key)
    if path is None:
        return None
    try:
        _query(path)
    except ValueError as error:
        raise OptionsError(key, f"a JSONPath such as $.answer, not {path!r}: {error}") from error
    return path


def _parts(options: JsonObject, key: str, defaults: Mapping[str, str]) -> Parts | None:
    value = options.get(key)
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise OptionsError(key, f"an object with `path`, not {json_type(value)}")
    inside = _inside(key, value, ["path", *defaults])
    path = _path(inside, f"{key}.path")
    if path is None:
        raise OptionsError(
            key=f"{key}.path", expected="the JSONPath of each of them, such as $.calls[*]"
        )
    return Parts(
        path,
        {name: _path(inside, f"{key}.{name}") or default for name, default in defaults.items()},
    )


def _usage_paths(value: JsonValue) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise OptionsError(
            key="output.usage", expected=f"an object of JSONPaths, not {json_type(value)}"
        )
    inside = _inside("output.usage", value, _USAGE_PARTS)
    paths = {name: _path(inside, f"output.usage.{name}") for name in value}
    return {name: path for name, path in paths.items() if path is not None}


def _records(lines: Sequence[str]) -> JsonValue:
    """Return the lines that are JSON, as a list: a program may log between them."""
    return [value for line in lines if (value := _json(line)) is not None]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _number(values: Sequence[JsonValue]) -> float | None:
    """Return the sum of the numbers that were found; `None` where there is none."""
    numbers = [one for one in values if isinstance(one, int | float) and not isinstance(one, bool)]
    if not numbers or not all(0 <= one < _NO_COUNT for one in numbers):
        return None
    return float(sum(numbers))


_NO_COUNT = 1e15
"""No count and no amount of what an attempt uses is as large."""


def _count(values: Sequence[JsonValue]) -> int | None:
    number = _number(values)
    return None if number is None else int(number)
