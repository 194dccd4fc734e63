"""`python -m pytest_mst`: what can be done without running evals.

Each command is a function that adds its parser and names the function that runs it. What a
command needs is imported when it runs, so that `--help` is instant.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mst.domain.errors import MstError

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
    try:
        return run(options)
    except MstError as error:
        sys.stderr.write(f"{error}\n")
        return REFUSED


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


COMMANDS: tuple[Callable[[Commands], None], ...] = (_add_schema,)
"""What there is to run, in the order of `--help`."""

if __name__ == "__main__":
    sys.exit(main())
