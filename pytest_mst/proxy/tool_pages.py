"""Reading a server's tools, all pages of them, however the pages come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_mst.domain.write import hinted_read_only
from pytest_mst.proxy.handshake import Agreement
from pytest_mst.proxy.json_rpc import Peer

_PAGE_LIMIT = 1000


async def read_tools(
    peer: Peer, agreement: Agreement, page_timeout_s: float
) -> dict[str, Mapping[str, Any]]:
    """Read all pages of `tools/list`.

    Raises:
        RpcError: the server refused.
        RequestTimeoutError: a page did not come in time.
        PeerGoneError: the connection ended.
        ValueError: the pages never end, or are not pages.

    """
    tools: dict[str, Mapping[str, Any]] = {}
    seen: set[str] = set()
    cursor: str | None = None
    while True:
        asked = None if cursor is None else {"cursor": cursor}
        page = await peer.request("tools/list", agreement.params(asked), timeout_s=page_timeout_s)
        _add(tools, page.get("tools"))
        cursor = page.get("nextCursor")
        if not cursor:
            return tools
        if not isinstance(cursor, str) or cursor in seen:
            msg = f"tools/list gives the cursor {cursor!r} again, so that its pages never end"
            raise ValueError(msg)
        seen.add(cursor)
        if len(seen) >= _PAGE_LIMIT:
            msg = f"tools/list has more than {_PAGE_LIMIT} pages"
            raise ValueError(msg)


def _add(tools: dict[str, Mapping[str, Any]], page: object) -> None:
    if not isinstance(page, list):
        msg = f"a page of tools/list has no list of tools: {page!r:.200}"
        raise ValueError(msg)
    for tool in page:
        if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
            continue
        known = tools.get(tool["name"])
        # Of two tools with one name nobody knows which a call is for: the one that writes counts.
        if known is None or not hinted_read_only(tool):
            tools[tool["name"]] = tool
