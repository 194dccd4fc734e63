"""The ways of pytest-xdist to run tests that evals cannot be run in, refused before any starts.

A run's promise is that each attempt is made once and none is forgotten, whatever happens to the
process that makes it, and that every process writes into the one folder of the run.
"""

from __future__ import annotations

import pytest

RESTARTS_PER_WORKER = 4
"""How often workers may be replaced, for each that there is at first; as xdist has it with `-n`."""


def check_distribution(config: pytest.Config) -> None:
    """Refuse what xdist cannot keep the promise in, and bound how often workers are replaced.

    Raises:
        pytest.UsageError: such a mode was asked for.

    """
    option = config.option
    if getattr(option, "looponfail", False):
        msg = (
            "--looponfail runs failing tests again for as long as it is up, and with them attempts "
            "that were made; with --mst run pytest again yourself, with --lf for what did not pass"
        )
        raise pytest.UsageError(msg)
    if not _distributes(config):
        return
    if option.dist == "each":
        msg = (
            "--dist each has every worker make every attempt, into one run; with --mst take "
            "--dist load, and --mst-trials for more attempts at each case"
        )
        raise pytest.UsageError(msg)
    for spec in option.tx if option.numprocesses is None else ():
        _check_spec(spec)
    if option.numprocesses is None and option.maxworkerrestart is None:
        option.maxworkerrestart = str(RESTARTS_PER_WORKER * _count(option.tx))


def _distributes(config: pytest.Config) -> bool:
    """Tell whether tests are to be run in workers; asked before xdist has put its options right."""
    option = config.option
    processes: int | str | None = getattr(option, "numprocesses", None)
    if processes is not None:
        return processes != 0
    return bool(getattr(option, "tx", ()) and (option.dist != "no" or option.distload))


def _check_spec(spec: str) -> None:
    """Refuse a worker that is not a process of this machine, in this folder."""
    words = {word.partition("=")[0] for word in _kind(spec).split("//")}
    if "popen" not in words or words & {"chdir", "via"}:
        msg = (
            f"--tx {spec}: with --mst workers are processes of this machine, in this folder, since "
            "they write one run together; take -n NUM, or --tx NUM*popen"
        )
        raise pytest.UsageError(msg)


def _kind(spec: str) -> str:
    """Return a specification without the number of workers before it, as in `2*popen`."""
    number, star, kind = spec.partition("*")
    return kind if star and number.strip().isdigit() else spec


def _count(specs: list[str]) -> int:
    return sum(int(one.partition("*")[0]) if _kind(one) != one else 1 for one in specs)
