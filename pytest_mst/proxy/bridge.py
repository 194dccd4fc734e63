"""An in-memory MCP transport for an event loop other than the proxy's own.

An agent in a test body has a loop of its own; the boundary lives in the background loop. Each
message is handed across, in order, both ways.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from pytest_mst.proxy.boundary import Boundary

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal


@asynccontextmanager
async def bridged_transport(
    portal: BlockingPortal, boundary: Boundary, label: str
) -> AsyncIterator[tuple[Any, Any]]:
    """Open a transport to one server of a boundary, for use in the running event loop.

    Args:
        portal: the way into the loop that the boundary lives in.
        boundary: the attempt's boundary.
        label: the server's label.

    Raises:
        KeyError: there is no server of that label.

    """
    far = portal.wrap_async_context_manager(boundary.transport(label))
    read, write = await anyio.to_thread.run_sync(far.__enter__)
    to_us, received = anyio.create_memory_object_stream[Any](math.inf)
    sent, to_send = anyio.create_memory_object_stream[Any](math.inf)
    here = asyncio.get_running_loop()

    async def bring_here() -> None:
        """In the far loop: hand over what the proxy says."""
        with suppress(anyio.ClosedResourceError, RuntimeError):  # RuntimeError: our loop has ended
            async for item in read:
                here.call_soon_threadsafe(_give, to_us, item)
        with suppress(RuntimeError):
            here.call_soon_threadsafe(to_us.close)

    async def take_there() -> None:
        """In our loop: hand over what the client says, one after the other."""
        async for item in to_send:
            await asyncio.wrap_future(portal.start_task_soon(write.send, item))

    bringing = portal.start_task_soon(bring_here)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(take_there)
            yield received, sent
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            bringing.cancel()
            await anyio.to_thread.run_sync(far.__exit__, None, None, None)
            for stream in (to_us, received, sent, to_send):
                stream.close()


def _give(stream: Any, item: object) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        stream.send_nowait(item)
