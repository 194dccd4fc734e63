"""Server objects in this process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.subscriptions import ToolsListChanged

from pytest_mst.domain.tool_call import ServerGoneError, ToolCallError
from pytest_mst.proxy.hub import Hub
from pytest_mst.proxy.unavailable import ServerUnavailableError
from pytest_mst.proxy.upstream_spec import UpstreamSpec
from tests.proxy.servers import objects
from tests.proxy.setting import attempt, python, text

pytestmark = pytest.mark.anyio
ERAS = pytest.mark.parametrize("protocol", ["auto", "legacy"])


@ERAS
async def test_a_live_server_object_is_read_and_its_writes_are_stopped(protocol: str) -> None:
    server, calls = objects.make_server()
    spec = python("not.used:here", server, protocol=protocol)
    with anyio.fail_after(10):
        async with attempt(spec) as boundary:
            assert text(await boundary.call_tool("object", "look", {"name": "x"})) == "found x"
            await boundary.call_tool("object", "put", {"name": "x"})
            async with Client(boundary.transport("object")) as client:
                await client.call_tool("put", {"name": "y"})
    assert calls.names == ["look"]
    assert [entry.arguments for entry in boundary.entries] == [{"name": "x"}, {"name": "y"}]


@pytest.mark.parametrize("attribute", ["low_level", "server"])
async def test_a_server_is_found_beside_the_eval_config(attribute: str) -> None:
    before = list(sys.path)
    async with attempt(python(f"objects_beside:{attribute}")) as boundary:
        await boundary.call_tool("object", "look", {"name": "x"})
    assert sys.path == before


async def test_a_tool_that_blocks_for_ever_blocks_neither_us_nor_other_attempts() -> None:
    server, calls = objects.make_server()
    spec = python("x:y", server, callTimeoutMs=300)
    with anyio.fail_after(10):
        async with Hub() as hub:
            async with attempt(spec, hub=hub) as boundary:
                with pytest.raises(ToolCallError) as caught:
                    await boundary.call_tool("object", "block", {})
                await boundary.call_tool("object", "put", {"name": "x"})
            calls.released.set()
    assert caught.value.code == -32001


def test_a_blocked_server_object_does_not_keep_the_interpreter_from_ending() -> None:
    script = (
        "import anyio\n"
        "from tests.proxy.servers import objects\n"
        "from tests.proxy.setting import *\n"
        "from pytest_mst.domain.tool_call import ToolCallError\n"
        "server, calls = objects.make_server()\n"
        "async def main():\n"
        "    async with attempt(python('x:y', server, callTimeoutMs=100)) as boundary:\n"
        "        try: await boundary.call_tool('object', 'block', {})\n"
        "        except ToolCallError: print('went on')\n"
        "anyio.run(main)\n"
    )
    root = Path(__file__).parents[2]
    command = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(command, cwd=root, capture_output=True, timeout=15, check=True)
    assert done.stdout == b"went on\n"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_tool_that_exits_ends_its_server_and_nothing_else() -> None:
    server, _ = objects.make_server()
    with anyio.fail_after(10):
        async with attempt(python("x:y", server)) as boundary:
            with pytest.raises(ServerGoneError):
                await boundary.call_tool("object", "leave", {})
            assert text(await boundary.call_tool("object", "look", {"name": "x"})) == "found x"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("objects_besid:server", "objects_beside"),
        ("objects_beside:serve", "near it: server"),
        ("objects_beside:not_a_server", "type module"),
        ("broken_module:server", "the shelf fell down"),
        ("json:loads", "type function"),
    ],
)
async def test_a_name_that_is_wrong_is_told_with_what_is_near_it(name: str, words: str) -> None:
    async with Hub() as hub:
        with pytest.raises(ServerUnavailableError) as caught:
            await hub.list_tools(python(name))
    assert caught.value.broke == "object"
    assert words in str(caught.value)


async def test_a_namesake_from_another_folder_is_not_taken_for_the_one_meant(
    tmp_path: Path,
) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mst_namesake.py").write_text(
            "from mcp.server import Server\nserver = Server('s')\n"
        )
    async with Hub() as hub:
        for folder in ("a", "b"):
            config: Any = python("mst_namesake:server").config
            spec = UpstreamSpec("object", config, tmp_path / folder)
            if folder == "a":
                await hub.list_tools(spec)
            else:
                with pytest.raises(ServerUnavailableError, match="already imported from"):
                    await hub.list_tools(spec)


def turn_look_into_a_write(server: MCPServer) -> None:
    server.remove_tool("look")

    def look(name: str) -> str:
        """Look something up, and take it."""
        return f"took {name}"

    server.add_tool(look)


async def test_a_read_that_becomes_a_write_is_stopped_once_the_server_says_so() -> None:
    server, _ = objects.make_server()

    @server.tool(annotations=objects.READ)
    async def change(ctx: Context) -> str:
        turn_look_into_a_write(server)
        await ctx.notify_tools_changed()
        return "changed"

    with anyio.fail_after(10):
        async with attempt(python("x:y", server)) as boundary:
            await boundary.call_tool("object", "look", {"name": "a"})
            await boundary.call_tool("object", "change", {})
            upstream = boundary._gates["object"].upstream
            while upstream.known_listing is not None:
                await anyio.lowlevel.checkpoint()
            await boundary.call_tool("object", "look", {"name": "b"})
    assert [(entry.tool, entry.arguments) for entry in boundary.entries] == [
        ("look", {"name": "b"})
    ]


async def test_a_client_that_listens_hears_of_changes_under_its_own_request() -> None:
    server, _ = objects.make_server()

    @server.tool(annotations=objects.READ)
    async def change(ctx: Context) -> str:
        await ctx.notify_tools_changed()
        return "changed"

    with anyio.fail_after(10):
        async with (
            attempt(python("x:y", server)) as boundary,
            Client(boundary.transport("object")) as client,
            client.listen(tools_list_changed=True) as events,
        ):
            await client.call_tool("change", {})
            event = await anext(aiter(events))
    assert event == ToolsListChanged()
