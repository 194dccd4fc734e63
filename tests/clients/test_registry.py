"""Clients by name, and what a user may give in place of a name."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from pytest_mst.clients.client import ClientRequest
from pytest_mst.clients.function import FunctionClient
from pytest_mst.clients.registry import as_client, check_options, client_named
from pytest_mst.clients.scripted import ScriptedClient
from pytest_mst.domain.ending import Trial
from pytest_mst.domain.errors import OptionsError, SelectionError
from tests.clients.boundaries import Boundary, request

pytestmark = pytest.mark.anyio


async def agent(request: ClientRequest) -> str:
    return f"{request.input}: done"


class Agent:
    """An object whose call is the agent."""

    async def __call__(self, request: ClientRequest) -> str:
        return "called"


class Mine:
    """A client of a user's own."""

    name = "mine"

    async def run(self, request: ClientRequest) -> Trial:
        return Trial()


def test_the_scripted_client_is_known_by_its_name() -> None:
    client = client_named("scripted", asked_by="client")
    assert isinstance(client, ScriptedClient)
    assert as_client("scripted", asked_by="mst_client") is client


def test_a_name_that_is_none_is_told_with_those_there_are() -> None:
    with pytest.raises(SelectionError) as caught:
        as_client("scriptd", asked_by="--mst-client")
    assert (caught.value.option, caught.value.given) == ("--mst-client", "scriptd")
    assert "scripted" in caught.value.valid


def test_an_object_that_is_a_client_is_taken_as_it_is() -> None:
    mine = Mine()
    assert as_client(mine, asked_by="mst_client") is mine


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (agent, "agent"),
        (Agent(), "Agent"),
        (functools.partial(agent), "partial"),
        (Agent().__call__, "__call__"),
    ],
)
def test_what_can_be_awaited_for_an_answer_is_a_client(given: Any, name: str) -> None:
    client = as_client(given, asked_by="mst_client")
    assert isinstance(client, FunctionClient)
    assert client.name == name


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (lambda request: "x", "function"),
        (None, "NoneType"),
        (3, "int"),
        (Mine, "the class Mine"),
        (ScriptedClient, "the class ScriptedClient"),
        (object(), "object"),
    ],
    ids=["function", "None", "int", "class", "client-class", "object"],
)
def test_what_is_no_client_is_told_with_what_would_be_one(given: Any, found: str) -> None:
    with pytest.raises(TypeError, match=f"^mst_client gives {found}; valid: .*async function"):
        as_client(given, asked_by="mst_client")


def test_options_are_checked_by_clients_that_can() -> None:
    check_options(Mine(), {"anything": 1})
    check_options(ScriptedClient(), {"script": []})
    with pytest.raises(OptionsError):
        check_options(ScriptedClient(), {"anything": 1})


async def test_a_functions_answer_is_the_trials_and_its_trace_is_only_observed() -> None:
    asked = request()
    assert await FunctionClient(agent).run(asked) == Trial()
    assert asked.trace.answer == "do it: done"
    assert asked.trace.evidence == "observed"
    assert FunctionClient(agent, "named").name == "named"


async def test_a_function_may_keep_the_trace_itself_and_answer_nothing() -> None:
    async def keeps(request: ClientRequest) -> None:
        request.trace.evidence = "structured"
        await request.tools.call_tool("chat", "list", {})

    boundary = Boundary()
    asked = request(boundary)
    await FunctionClient(keeps).run(asked)
    assert (asked.trace.evidence, asked.trace.answer) == ("structured", None)
    assert boundary.tools == ["list"]


async def test_a_function_may_say_more_of_its_end_than_an_answer() -> None:
    async def gives_up(request: ClientRequest) -> Trial:
        return Trial("it gave up", "turns")

    asked = request()
    assert await FunctionClient(gives_up).run(asked) == Trial("it gave up", "turns")
    assert asked.trace.answer is None


async def test_what_is_no_answer_is_never_taken_for_one() -> None:
    """Field report CL-25: an error that is returned and not raised."""

    async def returns(request: ClientRequest) -> Any:
        return {"error": "400 bad request"}

    with pytest.raises(TypeError, match="the agent 'returns' returned dict; valid: the answer"):
        await FunctionClient(returns).run(request())


async def test_a_registered_client_is_known_by_its_name_beside_ours() -> None:
    mine = Mine()
    given = {"mine": mine}
    assert client_named("mine", asked_by="client", registered=given) is mine
    with pytest.raises(SelectionError) as caught:
        as_client("other", asked_by="mst_client", registered=given)
    assert {"mine", "scripted", "command"} <= set(caught.value.valid)


async def test_what_a_function_raises_passes_through() -> None:
    lost = ConnectionError("lost")

    async def fails(request: ClientRequest) -> str:
        raise lost

    with pytest.raises(ConnectionError) as caught:
        await FunctionClient(fails).run(request())
    assert caught.value is lost
