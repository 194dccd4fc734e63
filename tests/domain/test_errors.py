"""Errors that a user can mend: where, what was found, what is valid, and the way out."""

from __future__ import annotations

import pytest

from pytest_mst.domain.errors import (
    EvalFileError,
    EvalFileErrors,
    LoadCheckError,
    MarkerError,
    MstError,
    OptionsError,
    Place,
    SelectionError,
    StoreError,
)

PLACE = Place("evals/a.eval.yaml", 7, "servers.chat")


@pytest.mark.parametrize(
    ("place", "written"),
    [
        (Place("a.yaml"), "a.yaml"),
        (Place("a.yaml", 3), "a.yaml:3"),
        (Place("a.yaml", None, "cases[2]"), "a.yaml (cases[2])"),
        (PLACE, "evals/a.eval.yaml:7 (servers.chat)"),
    ],
)
def test_a_place_is_written_as_editors_link_it(place: Place, written: str) -> None:
    assert str(place) == written


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (EvalFileError(PLACE, "is wrong"), f"{PLACE}: is wrong"),
        (EvalFileError(PLACE, "is wrong", "mend it"), f"{PLACE}: is wrong; mend it"),
        (LoadCheckError(PLACE, "writes", server="chat"), f"{PLACE}: writes"),
        (LoadCheckError(PLACE, "writes", remedy="add a mode"), f"{PLACE}: writes; add a mode"),
        (SelectionError("--x", "b", ["a", "c"]), "--x: there is no 'b'; there are: a, c"),
        (SelectionError("--x", "b", []), "--x: there is no 'b'; there are: none"),
        (MarkerError("t.py::x", "mst", "is odd", "be even"), "t.py::x: @pytest.mark.mst is odd;"),
        (OptionsError("script", "a list"), "clientOptions.script takes a list"),
        (StoreError("a/b", "cannot be written"), "a/b: cannot be written"),
        (StoreError("a/b", "is full", "free space"), "a/b: is full; free space"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_builds_its_message_from_its_fields(error: MstError, message: str) -> None:
    assert str(error).startswith(message)
    assert isinstance(error, MstError)


def test_fields_are_kept_for_who_asks() -> None:
    refused = LoadCheckError(PLACE, "writes", server="chat", tools=["a", "b"], remedy="mend")
    assert (refused.place, refused.problem, refused.remedy) == (PLACE, "writes", "mend")
    assert (refused.server, refused.tools) == ("chat", ("a", "b"))
    wrong = SelectionError("--x", "b", ["a"])
    assert (wrong.option, wrong.given, wrong.valid) == ("--x", "b", ("a",))
    marked = MarkerError("t.py::x", "mst", "is odd", "be even")
    assert (marked.test, marked.marker, marked.remedy) == ("t.py::x", "mst", "be even")
    stored = StoreError("a/b", "is full", "free space")
    assert (stored.path, stored.problem, stored.remedy) == ("a/b", "is full", "free space")
    assert OptionsError("script", "a list").key == "script"


def test_several_errors_are_told_a_line_each() -> None:
    errors = [EvalFileError(Place("a", line), f"problem {line}") for line in (1, 2)]
    told = EvalFileErrors(errors)
    assert told.errors == tuple(errors)
    assert str(told).splitlines() == [str(error) for error in errors]
