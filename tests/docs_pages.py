"""The code blocks of the documentation, and how what they show is compared with what happens.

A comment before a block says what is done with it:

- `file: NAME`: it is written as a file of the page's project;
- `run`: its command is run there, and its output compared; a line `...` stands for any lines;
- `run with a model`: as `run`, where a model is played on loopback (`docs_models`);
- `make evals`: as `run`, for the example evals of this repository;
- `part`: keys of an eval config, laid over a small one and loaded;
- `commands`: for a person's shell; what they name has to be there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/agents.md",
    "docs/command.md",
    "docs/judges.md",
    "docs/models.md",
    "docs/own-agents.md",
    "docs/costs.md",
    "docs/programs.md",
    "docs/scripted.md",
    "docs/writes.md",
)
ELISION = "..."

_BLOCK = re.compile(
    r"(?:^<!-- (?P<directive>[^\n]*?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_VARYING = (
    (re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}"), "RUN"),
    (re.compile(r"(--mst-resume) [0-9a-f]{6}\b"), r"\1 RUN"),
    (re.compile(r"@[a-z0-9]{8}\b"), "@ATTEMPT"),
    (re.compile(r"\bin \d+\.\d\ds"), "in SECONDS"),
    (re.compile(r"([=_!-])\1{2,}"), r"\1\1\1"),
    (re.compile(r" {2,}"), " "),
)


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    page: str
    line: int
    language: str
    directive: str
    text: str

    @property
    def commands(self) -> list[str]:
        """What is to be typed."""
        return [line[2:] for line in self.text.splitlines() if line.startswith("$ ")]

    @property
    def steps(self) -> Iterator[tuple[str, str]]:
        """What is to be typed, line by line, and what is then seen."""
        for step in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            command, _, output = step.partition("\n")
            yield command, output


def blocks_of(page: str) -> Iterator[Block]:
    """Yield the blocks of a page in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("text"))
        yield Block(page, line, match["language"], match["directive"] or "", match["text"])


def mismatch(shown: str, actual: str) -> str | None:
    """Say which of the shown lines are not among the actual ones, in order; `None` where all are.

    What differs from run to run (ids, times, the width of rules) is taken to be equal.
    """
    lines = _normalised(actual)
    at = 0
    for chunk in _chunks(_normalised(shown)):
        found = next(
            (i for i in range(at, len(lines) + 1) if lines[i : i + len(chunk)] == chunk), None
        )
        if found is None:
            return "not seen:\n" + "\n".join(chunk) + "\n\nin:\n" + actual
        at = found + len(chunk)
    return None


def _normalised(text: str) -> list[str]:
    for pattern, replacement in _VARYING:
        text = pattern.sub(replacement, text)
    return [line.rstrip() for line in text.strip().splitlines()]


def _chunks(lines: list[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    for line in [*lines, ELISION]:
        if line != ELISION:
            chunk.append(line)
        elif chunk:
            yield chunk
            chunk = []
