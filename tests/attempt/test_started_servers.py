"""What is refused of servers whose programs the run starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_mst.attempt.load_check import upstream_specs
from pytest_mst.attempt.started_servers import check_is_started, check_starts, started_labels
from pytest_mst.domain.errors import LoadCheckError, Place
from pytest_mst.domain.eval_config import EvalConfig
from pytest_mst.domain.loaded import LoadedEval

READY = "http://127.0.0.1:8000/health"


def web(ready_url: str = READY, *args: str, **start: Any) -> dict[str, Any]:
    given = {"command": "python", "args": list(args), "readyUrl": ready_url, **start}
    return {"transport": "http", "serverUrl": "http://127.0.0.1:8000/mcp", "start": given}


def loaded(folder: str = "/evals", **servers: dict[str, Any]) -> LoadedEval:
    config = EvalConfig.model_validate({"name": "team", "servers": servers})
    places = {f"servers.{label}.start": Place("x.eval.yaml", 7) for label in servers}
    return LoadedEval(Path(folder, "x.eval.yaml"), config, (), (), places)


def check(*evals: LoadedEval) -> None:
    check_starts(
        (one, spec)
        for one in evals
        for spec in upstream_specs(one, list(one.config.servers), {}).values()
    )


def test_the_labels_of_servers_with_a_program_are_known() -> None:
    plain = {"transport": "http", "serverUrl": "http://x"}
    assert started_labels(loaded(a=web(), b=plain).config) == {"a"}


def test_one_program_for_several_servers_and_evals_is_fine() -> None:
    check(loaded(a=web(), b=web(timeoutMs=1)), loaded(c=web()), loaded(d=web("http://x:1")))


@pytest.mark.parametrize(
    "other",
    [
        web(READY, "more"),
        web("http://localhost:8000/other"),
        web(env={"A": "b"}),
    ],
)
def test_two_programs_at_one_address_are_refused(other: dict[str, Any]) -> None:
    with pytest.raises(LoadCheckError, match="'a' and 'b' start different programs") as caught:
        check(loaded(a=web(), b=other))
    assert (caught.value.place.line, caught.value.server) == (7, "b")


def test_evals_whose_programs_are_at_one_address_are_named() -> None:
    with pytest.raises(LoadCheckError, match="of the evals 'team' and 'team'"):
        check(loaded(a=web()), loaded("/elsewhere", a=web()))


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x/", "/health", "http://", "http://x:y/"])
def test_a_ready_url_has_to_be_an_http_address(url: str) -> None:
    with pytest.raises(LoadCheckError, match="a readyUrl that is no address"):
        check(loaded(a=web(url)))


def test_only_what_the_session_was_loaded_with_is_started() -> None:
    known = [loaded(a=web())]
    check_is_started(loaded(other=web(timeoutMs=5)), known)
    for unknown in (loaded(a=web(READY, "more")), loaded("/elsewhere", a=web())):
        with pytest.raises(LoadCheckError, match="the program of server 'a' was not started"):
            check_is_started(unknown, known)
