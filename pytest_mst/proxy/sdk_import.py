"""Importing the MCP SDK when it is first needed, beside whatever else there is to do."""

from __future__ import annotations

import importlib
import sys

import anyio.to_thread

_MODULE = "pytest_mst.proxy.sdk"


async def import_sdk() -> None:
    """Import the SDK in a thread: about a second of CPU that no event loop should stand for."""
    if _MODULE not in sys.modules:
        await anyio.to_thread.run_sync(importlib.import_module, _MODULE)
