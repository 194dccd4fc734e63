"""Placeholders that are misspelt, and so would be sent to a server or a client as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_mst.domain.errors import EvalFileError
from pytest_mst.domain.placeholder import TRIAL_ID, misspelt
from pytest_mst.eval_files.contract import written_path
from pytest_mst.eval_files.document import Document, KeyPath
from pytest_mst.eval_files.quoted import quoted


def check_placeholders(
    document: Document, path: KeyPath, value: object, known: Sequence[str] = (TRIAL_ID,)
) -> Iterator[EvalFileError]:
    """Find what is all but a placeholder: a cleanup with one would leave real writes behind.

    Args:
        document: the file.
        path: where the value is in it.
        value: a JSON value of any depth.
        known: the placeholders that are filled in there.

    """
    for one in misspelt(value, known):
        yield document.error(
            written_path((*path, *one.path), document.value),
            f"{quoted(one.written)} is no placeholder, and nothing would be filled in for it",
            f"did you mean {one.meant}?",
        )
