"""How an attempt by a program ended, from facts, in the order in which they count."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pytest_mst.clients.client import ClientRequest
from pytest_mst.clients.ground_truth import not_reached, server_not_reached
from pytest_mst.clients.program.run import Ran
from pytest_mst.domain.ending import (
    Broke,
    Ending,
    InfrastructureError,
    InfrastructureFailure,
    Trial,
)
from pytest_mst.domain.json_value import JsonValue
from pytest_mst.domain.retry import RetryHint

if TYPE_CHECKING:
    from pytest_mst.clients.program.model_api import ModelApi

_DETAIL_LIMIT_CHARS = 8_000


@dataclass(frozen=True, slots=True)
class Said:
    """What a client's final record says of its ending."""

    ending: Ending | None = None
    """Decided by typed fields alone; `None` where they cannot tell."""
    retry: RetryHint | None = None
    """Why and when to try again, where the fields say that."""
    raw: Mapping[str, JsonValue] = field(default_factory=dict)
    """The fields, as they were, for people."""


def decided(
    request: ClientRequest,
    ran: Ran,
    said: Said | None,
    api: ModelApi | None = None,
    *,
    connects_to_all: bool = True,
) -> Trial:
    """Return how an attempt ended where that is a trial.

    What counts, in this order: what we ended the program for; that there is no final record;
    the record's typed fields; what the proxy saw; what the model's API said last, as we recorded
    it. What none of these says is a failure of the client's program.

    Args:
        request: the attempt.
        ran: how the program ended.
        said: what its final record says; `None` where there is none, whatever its exit status.
        api: what its requests to the model went through; `None` where it asked by itself.
        connects_to_all: whether the client connects to all its servers when it starts.

    Raises:
        InfrastructureError: it is no trial.

    """
    failing = None if api is None else api.failure()
    if ran.killed is not None or _context_is_full(said, api):
        return _given(ran.killed or Trial(stopped_by="context"))
    if said is None:
        if failing is not None:
            raise InfrastructureError.of(_detailed(failing, ran, said), _hint(api))
        raise InfrastructureError.of(no_final_record(ran))
    ending = said.ending
    if isinstance(ending, InfrastructureFailure):
        ours = failing is not None and ending.broke in (Broke.PROVIDER, Broke.NETWORK)
        if failing is not None and ours and ending.retryable:  # the same, and known more exactly
            raise InfrastructureError.of(_detailed(failing, ran, said), _hint(api))
        raise InfrastructureError.of(_detailed(ending, ran, said), said.retry)
    away = not_reached(request)
    if ending is not None:
        if away and connects_to_all:
            raise InfrastructureError.of(server_not_reached(away, _detail(ran, said)))
        return ending
    if failing is not None:
        raise InfrastructureError.of(_detailed(failing, ran, said), _hint(api))
    if away and connects_to_all:
        raise InfrastructureError.of(server_not_reached(away, _detail(ran, said)))
    raise InfrastructureError.of(
        InfrastructureFailure(
            Broke.CLIENT_APP,
            f"the client ended ({ran.how}), and nothing that it says tells how its attempt did",
            retryable=True,
            detail=_detail(ran, said),
        )
    )


def _context_is_full(said: Said | None, api: ModelApi | None) -> bool:
    """Tell whether an attempt's own turns filled the context, and the client says nothing else."""
    return api is not None and api.context_is_full and (said is None or said.ending is None)


def no_final_record(ran: Ran) -> InfrastructureFailure:
    """Return what it means that a program ended and did not say how its attempt did."""
    return InfrastructureFailure(
        Broke.CLIENT_APP,
        f"the client {ran.how} without its final record, so that nobody knows how far it came",
        retryable=True,
        detail=_detail(ran, None),
    )


def _given(ending: Ending) -> Trial:
    if isinstance(ending, InfrastructureFailure):
        raise InfrastructureError.of(ending)
    return ending


def _hint(api: ModelApi | None) -> RetryHint | None:
    return None if api is None else api.hint()


def _detailed(failure: InfrastructureFailure, ran: Ran, said: Said | None) -> InfrastructureFailure:
    detail = _detail(ran, said)
    both = [one for one in (failure.detail, detail) if one]
    return replace(failure, detail="\n".join(both) or None)


def _detail(ran: Ran, said: Said | None) -> str | None:
    """Return a client's raw fields and last words, for people; no logic reads it."""
    parts = [ran.how]
    if said is not None and said.raw:
        parts.append(json.dumps(dict(said.raw), ensure_ascii=False, default=str))
    if ran.stderr.strip():
        parts.append(ran.stderr.strip())
    return "\n".join(parts)[:_DETAIL_LIMIT_CHARS]
