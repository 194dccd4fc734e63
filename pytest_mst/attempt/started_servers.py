"""The servers whose programs the run starts, and what is refused of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_mst.domain.errors import LoadCheckError
from pytest_mst.domain.eval_config import EvalConfig, HttpServer, StartedProcess
from pytest_mst.domain.loaded import LoadedEval
from pytest_mst.proxy.started import address_of, program_identity, start_of
from pytest_mst.proxy.upstream_spec import UpstreamSpec


def started_labels(config: EvalConfig) -> frozenset[str]:
    """Return the labels of the servers whose programs the run starts."""
    return frozenset(_starts(config))


def _starts(config: EvalConfig) -> dict[str, StartedProcess]:
    return {
        label: server.start
        for label, server in config.servers.items()
        if isinstance(server, HttpServer) and server.start is not None
    }


def check_starts(specs: Iterable[tuple[LoadedEval, UpstreamSpec]]) -> None:
    """Refuse programs that cannot be told ready, or apart.

    Raises:
        LoadCheckError: a `readyUrl` is no HTTP address, or two programs are to answer at the
            same one, so that one of them would be taken for the other.

    """
    seen: dict[tuple[str, int | None], tuple[LoadedEval, UpstreamSpec]] = {}
    for loaded, spec in specs:
        start = start_of(spec)
        if start is None:
            continue
        place = loaded.place("servers", spec.label, "start")
        address = address_of(start.ready_url)
        if address is None:
            raise LoadCheckError(
                place,
                f"the program of server {spec.label!r} has a readyUrl that is no address",
                server=spec.label,
                remedy="write one such as http://127.0.0.1:8000/health",
            )
        other, known = seen.setdefault(address, (loaded, spec))
        if program_identity(known) != program_identity(spec):
            where = f"servers {known.label!r} and {spec.label!r}"
            if other is not loaded:
                where += f" (of the evals {other.config.name!r} and {loaded.config.name!r})"
            raise LoadCheckError(
                place,
                f"{where} start different programs that are to answer at the same address",
                server=spec.label,
                remedy="give each program an address of its own, or write the same `start` for "
                "both, which is then started once",
            )


def check_is_started(loaded: LoadedEval, known: Iterable[LoadedEval]) -> None:
    """Refuse an eval with a server whose program was not started when the session was.

    Programs are started once, by the process that loads the evals, before anything is collected;
    a test's fixtures run later, and under xdist in several processes.

    Args:
        loaded: an eval that was met later, or that fixtures have changed.
        known: the evals that the session was loaded with.

    Raises:
        LoadCheckError: there is such a server.

    """
    started = [program for one in known for program in _programs(one).values()]
    for label, program in _programs(loaded).items():
        if program not in started:
            raise LoadCheckError(
                loaded.place("servers", label, "start"),
                f"the program of server {label!r} was not started: `start` is for servers of eval "
                "files that are known before tests are collected",
                server=label,
                remedy="name the eval file in the marker, @pytest.mark.mst(config=...), or start "
                "the program in the fixture and leave `start` out",
            )


def _programs(loaded: LoadedEval) -> dict[str, tuple[Path, object]]:
    """Return what each program is started with, and from where, by its server's label."""
    return {
        label: (loaded.path.parent, start.model_dump(exclude={"timeout_ms"}))
        for label, start in _starts(loaded.config).items()
    }
