"""A key that is written twice in one object, in whichever format."""

from __future__ import annotations

from pytest_mst.domain.errors import EvalFileError, Place
from pytest_mst.eval_files.document import KeyPath, path_text
from pytest_mst.eval_files.quoted import quoted


def repeated_key(
    file: str, path: KeyPath, key: str, *, first_line: int, line: int
) -> EvalFileError:
    """Build the error.

    Args:
        file: the file as the user would write it.
        path: where the object is.
        key: the key.
        first_line: where the key is written first, 1-based.
        line: where it is written again, 1-based.

    """
    return EvalFileError(
        Place(file, line, path_text((*path, key))),
        f"the key {quoted(key)} is written twice, in line {first_line} and in line {line}",
        "keep one of the two",
    )
