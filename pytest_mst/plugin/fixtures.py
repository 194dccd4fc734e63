"""The fixtures that test functions marked `mst` use. Known without `--mst`, and light then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from pytest_mst.plugin.keys import CASE, SESSION

if TYPE_CHECKING:
    from pytest_mst.attempt.trial_view import FinishedTrial, WriteRecord
    from pytest_mst.clients.client import Client
    from pytest_mst.domain.eval_config import EvalConfig
    from pytest_mst.plugin.case_item import CaseItem
    from pytest_mst.plugin.live_case import Conversation, LiveCase, ProxyView
    from pytest_mst.plugin.session import RunInfo


def _case(request: pytest.FixtureRequest, fixture: str) -> CaseItem:
    case: CaseItem | None = request.node.stash.get(CASE, None)
    if case is None:
        pytest.fail(
            f"the fixture {fixture!r} is for eval cases: mark the test with @pytest.mark.mst(...) "
            "and run with --mst",
            pytrace=False,
        )
    return case


@pytest.fixture
def _mst_variant(request: pytest.FixtureRequest) -> str:
    """Carry the name of the variant that an item is for."""
    name: str = request.param
    return name


@pytest.fixture
def mst_config(request: pytest.FixtureRequest) -> EvalConfig | None:
    """The eval config that cases are put to: what the marker names.

    Override it (module scope or wider lets attempts run ahead) to return an EvalConfig, the
    path of one, or its content as a dict.
    """
    prepared = _case(request, "mst_config").prepared
    return prepared.loaded.config if prepared is not None else None


@pytest.fixture
def mst_servers() -> Mapping[str, Any]:
    """Servers to add or to put in place of the config's, by label.

    Override it to return server objects in this process (`mcp` servers), or definitions as an
    eval config has them.
    """
    return {}


@pytest.fixture
def mst_client(request: pytest.FixtureRequest) -> Client | str | None:
    """The client that acts on the input: what the config names.

    Override it to return the name of a client, a client, or an async function that takes a
    ClientRequest and returns the answer: your own agent.
    """
    case = _case(request, "mst_client")
    return case.target.client if case.target is not None else None


@pytest.fixture
def _mst_target(
    request: pytest.FixtureRequest, mst_config: Any, mst_servers: Any, mst_client: Any
) -> None:
    """Settle what the case is put to."""
    from pytest_mst.plugin.own_target import Given, settle

    case = _case(request, "trial")
    given = Given(mst_config, mst_servers, mst_client)
    settle(request.config.stash[SESSION], case, request.node, given)


@pytest.fixture
def trial(request: pytest.FixtureRequest, _mst_target: None) -> FinishedTrial:
    """The finished trial: answer, trace, writes, usage. The test body grades it."""
    from pytest_mst.plugin.live_case import finished_trial

    return finished_trial(request.config.stash[SESSION], _case(request, "trial"))


@pytest.fixture
def _mst_live(request: pytest.FixtureRequest, _mst_target: None) -> Iterator[LiveCase]:
    """An attempt whose client the body runs, open until the body has ended."""
    from pytest_mst.plugin.live_case import LiveCase

    live = LiveCase(request.config.stash[SESSION], _case(request, "mst"))
    live.open()
    yield live
    live.finish()


@pytest.fixture
def mst(_mst_live: LiveCase) -> Conversation:
    """Run inputs now: `await mst.run(...)`, or `mst.run_sync(...)` in a plain function.

    Repeated calls continue one conversation.
    """
    return _mst_live.conversation


@pytest.fixture
def dry_run_proxy(request: pytest.FixtureRequest, _mst_target: None) -> ProxyView:
    """The proxy before the servers: call tools through it, or connect an agent of your own.

    Beside `trial` it is the proxy of the finished attempt: its calls can be looked at.
    """
    from pytest_mst.plugin.live_case import proxy_view

    return proxy_view(request, _case(request, "dry_run_proxy"))


@pytest.fixture
def write_record(request: pytest.FixtureRequest, _mst_target: None) -> WriteRecord:
    """The writes that reached the proxy in this attempt, in order."""
    from pytest_mst.plugin.live_case import write_record_view

    return write_record_view(request, _case(request, "write_record"))


@pytest.fixture
def mst_run(request: pytest.FixtureRequest) -> RunInfo:
    """The run that this case belongs to: its id, its eval's name and its folder."""
    from pytest_mst.plugin.session import RunInfo

    run = _case(request, "mst_run").run
    return RunInfo(run.run_id, run.name, run.layout.run_dir)
