"""What a client is told of a write that was stopped: planned, or as if it had been done."""

from __future__ import annotations

import copy
import json
import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_mst.domain.json_value import JsonObject, json_type
from pytest_mst.proxy.schema import CompiledSchema
from pytest_mst.proxy.smallest import CannotGenerateError, smallest_instance

_PLACEHOLDER = re.compile(r"\{\{\s*([\w.-]+)\s*\}\}")
_SAMPLE_TRIAL = "trial-id"


class ReplyError(Exception):
    """No valid reply can be made for a tool's stopped write."""

    def __init__(self, tool: str, problem: str, remedy: str) -> None:
        """Build the message from the tool, what is wrong, and the way out."""
        super().__init__(f"no reply can be made for a stopped {tool!r}: {problem}; {remedy}")
        self.tool = tool
        self.problem = problem
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class ReplyFacts:
    """What the placeholders of a template stand for."""

    arguments: JsonObject
    trial_id: str

    def value(self, name: str) -> Any:
        """Look a placeholder up.

        Raises:
            KeyError: there is nothing of that name.

        """
        match name.split("."):
            case ["unixTime"]:
                return int(time.time())
            case ["uuid"]:
                return str(uuid.uuid4())
            case ["trial", "id"]:
                return self.trial_id
            case ["arguments", *path]:
                return _at(self.arguments, path)
            case _:
                raise KeyError(name)


class PlannedReply:
    """Says that the write was recorded and not executed."""

    def __init__(self, label: str, tool: str, output: OutputSchema) -> None:
        self._text = (
            f"Planned write: {tool} on {label} was recorded and NOT executed."
            " Nothing was changed; do not report it as done."
        )
        self._structured = output.smallest(done=False) if output.checked else None

    def make(self, _facts: ReplyFacts) -> dict[str, Any]:
        """Give the `tools/call` result."""
        result: dict[str, Any] = {"content": [{"type": "text", "text": self._text}]}
        if self._structured is not None:
            result["structuredContent"] = copy.deepcopy(self._structured)
        return result


class SimulatedReply:
    """Answers as if the write had been done, with the smallest value that can be true of it."""

    def __init__(self, output: OutputSchema) -> None:
        self._structured = output.smallest(done=True) if output.checked else None

    def make(self, facts: ReplyFacts) -> dict[str, Any]:
        """Give the `tools/call` result."""
        if self._structured is not None:
            return _result(copy.deepcopy(self._structured), structured=True)
        value = {"ok": True, "id": str(uuid.uuid4()), "result": dict(facts.arguments)}
        return _result(value, structured=False)


class TemplateReply:
    """Answers with the eval config's own template."""

    def __init__(self, tool: str, template: Any, output: OutputSchema) -> None:
        self._tool = tool
        self._template = template
        self._output = output

    def make(self, facts: ReplyFacts) -> dict[str, Any]:
        """Give the `tools/call` result.

        Raises:
            ReplyError: the template names something that is not there, or does not fit.

        """
        try:
            value = filled(self._template, facts)
        except KeyError as error:
            problem = f"its template names {error.args[0]!r}, which is not there"
            raise self._error(problem) from None
        problems = self._output.problems(value)
        if problems:
            problem = f"its template does not fit its outputSchema: {problems[0]}"
            raise self._error(problem)
        return _result(value, structured=self._output.checked)

    def check(self) -> None:
        """Check the template before it is needed, as far as arguments do not come into it.

        Raises:
            ReplyError: it cannot fit, whatever the arguments.

        """
        names = placeholders(self._template)
        unknown = sorted(name for name in names if not _known(name))
        if unknown:
            problem = f"its template names {unknown[0]!r}, which there never is"
            raise self._error(problem)
        if not any(name.startswith("arguments") for name in names):
            self.make(ReplyFacts({}, _SAMPLE_TRIAL))

    def _error(self, problem: str) -> ReplyError:
        remedy = (
            f"change replies.{self._tool} (placeholders: unixTime, uuid, trial.id, arguments.NAME)"
        )
        return ReplyError(self._tool, problem, remedy)


class OutputSchema:
    """A tool's `outputSchema`: what its `structuredContent` must satisfy."""

    def __init__(self, tool: Mapping[str, Any]) -> None:
        self._name = str(tool.get("name"))
        schema = tool.get("outputSchema")
        self._schema: Mapping[str, Any] | None = schema if isinstance(schema, dict) else None
        self._compiled = CompiledSchema(self._schema)
        self._objects_only = (self._schema or {}).get("type", "object") == "object"
        """Structured content is an object (MCP) unless the schema itself says otherwise."""

    @property
    def checked(self) -> bool:
        """Whether there is a schema that can be used."""
        return self._schema is not None and self._compiled.usable

    def problems(self, value: Any) -> list[str]:
        """Say how a value does not fit."""
        if not self.checked:
            return []
        if self._objects_only and not isinstance(value, Mapping):
            return [f"it must be an object and is of type {json_type(value)}"]
        return self._compiled.problems(value)

    def smallest(self, *, done: bool) -> Any:
        """Give the smallest value that fits.

        Args:
            done: what it says where it can say either, as in `{"created": true}`.

        Raises:
            ReplyError: none was found.

        """
        try:
            return smallest_instance({"type": "object", **(self._schema or {})}, truth=done)
        except CannotGenerateError as error:
            remedy = f"write one under replies.{self._name} and simulate its writes"
            raise ReplyError(self._name, f"{error} (outputSchema)", remedy) from error


def filled(template: Any, facts: ReplyFacts) -> Any:
    """Fill a template in; a text that is one placeholder takes the value's own JSON type.

    Raises:
        KeyError: a placeholder names something that is not there.

    """
    if isinstance(template, str):
        whole = _PLACEHOLDER.fullmatch(template)
        if whole is not None:
            return copy.deepcopy(facts.value(whole[1]))
        return _PLACEHOLDER.sub(lambda found: _as_text(facts.value(found[1])), template)
    if isinstance(template, Mapping):
        return {name: filled(value, facts) for name, value in template.items()}
    if isinstance(template, list | tuple):
        return [filled(value, facts) for value in template]
    return template


def placeholders(template: Any) -> set[str]:
    """Name the placeholders in a template."""
    if isinstance(template, str):
        return set(_PLACEHOLDER.findall(template))
    if isinstance(template, Mapping):
        return set().union(*(placeholders(value) for value in template.values()))
    if isinstance(template, list | tuple):
        return set().union(*(placeholders(value) for value in template))
    return set()


def _known(name: str) -> bool:
    return name in {"unixTime", "uuid", "trial.id"} or name.partition(".")[0] == "arguments"


def _at(value: Any, path: list[str]) -> Any:
    for index, key in enumerate(path):
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise KeyError(".".join(["arguments", *path[: index + 1]]))
    return value


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _result(value: Any, *, structured: bool) -> dict[str, Any]:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
    if structured or isinstance(value, Mapping):
        result["structuredContent"] = value
    return result
