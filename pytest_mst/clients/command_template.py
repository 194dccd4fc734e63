"""`{{...}}` in what a command is given: what there is, and what is put in its place."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pytest_mst.domain.errors import OptionsError

INPUT = "input"
MCP_CONFIG = "mcpConfig"
MODEL = "model"
PLAIN_NAMES = (INPUT, MODEL, MCP_CONFIG, "trial.id", "trial.number", "folder", "home", "here")
"""What there is besides the address of each server."""

_IN_BRACES = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
_URL = re.compile(r"servers\.(.+)\.url")


@dataclass(frozen=True, slots=True)
class Template:
    """A text of an option, with what is filled in at each attempt."""

    key: str
    """Where it is written, below `clientOptions`."""
    text: str

    @property
    def names(self) -> frozenset[str]:
        """What is filled in, by name."""
        return frozenset(_IN_BRACES.findall(self.text))

    def filled(self, values: Mapping[str, str]) -> str:
        """Return the text with each name's value in its place.

        Raises:
            OptionsError: there is no value of a name: no such server, or no model.

        """
        missing = sorted(self.names - values.keys())
        if missing:
            there = ", ".join(sorted(name for name in values if _URL.fullmatch(name))) or "none"
            why = (
                "no model is set for this case"
                if missing[0] == MODEL
                else f"there is no such server; addresses there are: {there}"
            )
            raise OptionsError(self.key, f"what can be filled in, not {{{{{missing[0]}}}}}: {why}")
        return _IN_BRACES.sub(lambda found: values[found[1]], self.text)


def template_of(key: str, text: str) -> Template:
    """Read a text with names in it.

    Args:
        key: where it is written, below `clientOptions`.
        text: the text.

    Raises:
        OptionsError: a name is none that is ever filled in.

    """
    found = Template(key, text)
    for name in sorted(found.names):
        if name not in PLAIN_NAMES and not _URL.fullmatch(name):
            close = difflib.get_close_matches(name, [*PLAIN_NAMES, "servers.LABEL.url"], n=1)
            meant = f"; did you mean {{{{{close[0]}}}}}?" if close else ""
            valid = ", ".join([*PLAIN_NAMES, "servers.LABEL.url"])
            raise OptionsError(key, f"no {{{{{name}}}}}{meant}; valid: {valid}")
    return found


def url_name(label: str) -> str:
    """Return the name by which the address of a server is filled in."""
    return f"servers.{label}.url"


def labels_in(templates: Iterable[Template]) -> Iterator[str]:
    """Yield the labels of the servers whose addresses are filled in, each once."""
    names = dict.fromkeys(name for one in templates for name in sorted(one.names))
    for name in names:
        found = _URL.fullmatch(name)
        if found is not None:
            yield found[1]
