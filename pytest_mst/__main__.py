"""`python -m pytest_mst`: what can be done without running evals.

Each command is a function that adds its parser and names the function that runs it. What a
command needs is imported when it runs, so that `--help` is instant.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mst.domain.errors import MstError
from pytest_mst.report.text import shown

if TYPE_CHECKING:
    # What `add_subparsers` returns; argparse exports no public name for it.
    from argparse import _SubParsersAction

    Commands = _SubParsersAction[argparse.ArgumentParser]

REFUSED = 4
"""The exit code of what is refused, as in pytest."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        argv: the arguments; by default those of the process.

    """
    parser = argparse.ArgumentParser(
        prog="python -m pytest_mst", description="What can be done with evals without running them."
    )
    commands = parser.add_subparsers(required=True, metavar="command")
    for add in COMMANDS:
        add(commands)
    options = parser.parse_args(argv)
    run: Callable[[argparse.Namespace], int] = options.run
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for terminals that know few letters
    try:
        code = run(options)
        sys.stdout.flush()
    except MstError as error:
        sys.stderr.write("".join(f"{shown(line, 4096)}\n" for line in str(error).split("\n")))
        return REFUSED
    except BrokenPipeError:
        # whoever read, such as `head`, has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def _add_schema(commands: Commands) -> None:
    about = "print or write the JSON Schemas of eval configs and datasets"
    parser = commands.add_parser("schema", help=about, description=about)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("name", nargs="?", help="eval-config or dataset: print this one")
    what.add_argument("--write", type=Path, metavar="DIR", help="write all of them into DIR")
    parser.set_defaults(run=_schema)


def _schema(options: argparse.Namespace) -> int:
    from pytest_mst.domain.errors import SelectionError, StoreError
    from pytest_mst.eval_files.schemas import NAMES, schema, schema_text, write_schemas

    if options.write is None:
        if options.name not in NAMES:
            raise SelectionError(option="schema", given=options.name, valid=NAMES)
        sys.stdout.write(schema_text(schema(options.name)))
        return 0
    try:
        written = write_schemas(options.write)
    except OSError as error:
        problem = f"cannot be written: {error.strerror}"
        raise StoreError(str(options.write), problem) from error
    for path in written:
        sys.stdout.write(f"{path}\n")
    return 0


def _add_show(commands: Commands) -> None:
    about = "show one stored attempt, or the figures of a run"
    parser = commands.add_parser("show", help=about, description=about)
    parser.add_argument(
        "what",
        metavar="@LOCATOR | RUN",
        help="an attempt by its locator; or a run by its id, its short form or its folder",
    )
    parser.add_argument(
        "--results",
        type=Path,
        metavar="DIR",
        help="the folder that runs are stored in (default: .mst-results)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=_show)


def _show(options: argparse.Namespace) -> int:
    from pytest_mst.report.show_command import RESULTS_DIR, shown_text

    results = options.results or Path(RESULTS_DIR)
    text = shown_text([results], options.what, as_json=options.json)
    sys.stdout.write(f"{text}\n")
    return 0


COMMANDS: tuple[Callable[[Commands], None], ...] = (_add_show, _add_schema)
"""What there is to run, in the order of `--help`."""

if __name__ == "__main__":
    sys.exit(main())
