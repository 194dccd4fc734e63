"""Policies that are ready, so that a server's schemas are compiled once and not in each attempt."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_mst.domain.write import WriteMode, hinted_read_only
from pytest_mst.proxy.policy import ServerPolicy
from pytest_mst.proxy.upstream_spec import ServerListing, UpstreamSpec


class PolicyShelf:
    """Keeps the policy for each server and mode as long as the server lists the same tools."""

    def __init__(self) -> None:
        self._ready: dict[tuple[str, str, WriteMode], ServerPolicy] = {}

    def policy(self, spec: UpstreamSpec, mode: WriteMode, listing: ServerListing) -> ServerPolicy:
        """Give the policy for a server as it lists its tools.

        Raises:
            ReplyError: a template of a simulated reply cannot fit.

        """
        key = (spec.identity, spec.policy_identity, mode)
        known = self._ready.get(key)
        if known is None or not _same(known.tools.tools, listing.tools):
            tools = listing.server_tools(spec.config)
            known = self._ready[key] = ServerPolicy(
                tools,
                mode,
                spec.config.replies,
                planned_write_key=spec.config.planned_write_key,
            )
        return known


def _same(
    known: Mapping[str, Mapping[str, object]], listed: Mapping[str, Mapping[str, object]]
) -> bool:
    """Tell whether two lists are decided alike.

    To Python `1` equals `True`; as a hint it is none.
    """
    return known is listed or (
        known == listed
        and all(
            hinted_read_only(tool) is hinted_read_only(listed[name]) for name, tool in known.items()
        )
    )
