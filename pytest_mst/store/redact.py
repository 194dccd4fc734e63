"""Known secrets, replaced in everything that is stored or shown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from pytest_mst.store.encode import PlainValue, encode, plain

REDACTED = "[redacted]"
SHORTEST_SECRET_CHARS = 8
"""Shorter values are replaced in their own fields only, by whoever knows those: elsewhere they
would take pieces out of words that are no secret."""

FORMAT_WORDS = """
    mst.run/v1 mst.write/v1 infrastructure
    client-app workspace provider collection deadline requested incomplete ungraded unstarted
    tool_call subagent tool_search structured observed
    read-only simulated server-planned unguarded unknown-tool invalid-arguments complete
    evalName configId configName contentHash createdAt finishedAt startedAt resumedAt baseline
    variants datasets caseCount datasetName selection plannedCases passThreshold
    redactStoredResponses environment writeMode declaredWrites unhinted toolsHash protocol
    durationMs infrastructureError gradingError agreement unreportedWrites unrecordedWrites
    unclassifiedCalls graderFailures clientError stoppedBy retryable accepted arguments
    keyParts keyScheme gradingKey toolsKey toolHashes superseded replaced resumptions cannotHelp
    usesWithoutCost judgeCostUsd
    unclassified unparsed unparsedCalls evidence passRate trialPassRate writeCase timestamp
    timesInTrace timesInRecord inRecord unattributedWrites contestedCalls agreementChecked
"""
"""The words of the stored format, which every run holds anyway. A value that is one of them, or
a part of one, is not replaced: that would hide nothing, and nobody could read the run."""


class Redactor:
    """Replaces secrets in texts and JSON values; holds nothing else."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """Register secrets.

        Args:
            secrets: the values. Those shorter than `SHORTEST_SECRET_CHARS`, and words of the
                stored format, are left alone.

        """
        values = {value.strip() for value in secrets}
        forms = {
            form
            for value in values
            if len(value) >= SHORTEST_SECRET_CHARS and value not in FORMAT_WORDS
            for form in _written_forms(value)
        }
        # longest first: a secret may hold another
        self._forms = sorted(forms, key=lambda form: (-len(form), form))
        self._in_json = [_escaped(form) for form in self._forms]

    @property
    def longest_bytes(self) -> int:
        """The length of the longest text that is replaced, in UTF-8."""
        return max((len(form.encode(errors="replace")) for form in self._forms), default=0)

    def text(self, text: str) -> str:
        """Return the text with every secret in it replaced, also where it is JSON-escaped."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, REDACTED)
        return text

    def json_text(self, value: Mapping[str, object], kept: Iterable[str] = ()) -> str:
        """Write an object as one line of JSON with no secret in any text, key or number.

        Args:
            value: the object.
            kept: the names of its own fields, not of those further in, that stay as they are:
                the names that files are found by.

        """
        text = encode(value)
        # Replacing in the written text could cut an escape in two, so it is only searched here.
        if not any(form in text for form in self._in_json):
            return text
        redacted = self._object({name: plain(held) for name, held in value.items()})
        redacted |= {name: plain(value[name]) for name in kept if name in value}
        return encode(redacted)

    def _value(self, value: PlainValue) -> PlainValue:
        match value:
            case str():
                return self.text(value)
            case list():
                return [self._value(held) for held in value]
            case dict():
                return self._object(value)
            case int() | float() if not isinstance(value, bool):
                return REDACTED if repr(value) in self._forms else value
            case _:
                return value

    def _object(self, value: Mapping[str, PlainValue]) -> dict[str, PlainValue]:
        redacted: dict[str, PlainValue] = {}
        for key, held in value.items():
            name = shown = self.text(key)
            others = 1
            while name in redacted:
                others += 1
                name = f"{shown} ({others})"
            redacted[name] = self._value(held)
        return redacted


def _written_forms(secret: str) -> set[str]:
    """Return the secret as it may stand in a text: plain, and as JSON in JSON writes it."""
    forms = {secret}
    for _ in range(2):
        forms |= {_escaped(form) for form in forms}
        forms |= {json.dumps(form, ensure_ascii=False)[1:-1] for form in forms}
        forms |= {form.replace("/", r"\/") for form in forms if r"\/" not in form}
    return forms


def _escaped(text: str) -> str:
    return json.dumps(text)[1:-1]
