"""Files on disk as documents."""

from __future__ import annotations

from pathlib import Path

from pytest_mst.domain.errors import EvalFileError, EvalFileErrors, Place
from pytest_mst.eval_files.document import Document

SUFFIXES = (".json", ".yaml", ".yml")


def read_document(path: Path, file: str) -> Document:
    """Read a `.json`, `.yaml` or `.yml` file.

    Args:
        path: where the file is.
        file: the file as the user would write it.

    Raises:
        EvalFileErrors: it cannot be read, is not text in UTF-8, or not of its format.

    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise _refused(Place(file), "not a file this can read", f"name it {' or '.join(SUFFIXES)}")
    text = _text(path, file)
    if suffix == ".json":
        from pytest_mst.eval_files.json_text import read_json

        return read_json(text, file)
    from pytest_mst.eval_files.yaml_text import read_yaml

    return read_yaml(text, file)


def _text(path: Path, file: str) -> str:
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise _refused(Place(file), "is no ordinary file, so that reading it may never end")
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise _refused(Place(file), "there is no such file") from error
    except IsADirectoryError as error:
        raise _refused(Place(file), "is a folder, not a file") from error
    except OSError as error:
        raise _refused(Place(file), f"cannot be read: {error.strerror}") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _refused(Place(file, line), "is not text in UTF-8", "save it as UTF-8") from error


def _refused(place: Place, problem: str, remedy: str | None = None) -> EvalFileErrors:
    return EvalFileErrors([EvalFileError(place, problem, remedy)])


def shown_path(path: Path) -> str:
    """Write a path as the user would: relative to the working folder where it lies below it."""
    absolute = path.absolute()
    try:
        return str(absolute.relative_to(Path.cwd()))
    except ValueError:
        return str(absolute)
