"""How a client's program gets at its model: where the API is, with which key, and what it took."""

from __future__ import annotations

import os

from pytest_mst.clients.client import ClientRequest
from pytest_mst.clients.program.options import ProgramOptions
from pytest_mst.domain.usage import Usage
from pytest_mst.providers.endpoint import PUBLIC_BASE_URLS, Api, Endpoint
from pytest_mst.providers.price import priced


def key_of(name: str) -> str | None:
    """Return the key that a variable holds; `None` where it is not set, or empty."""
    return os.environ.get(name) or None


def base_url_of(options: ProgramOptions, variable: str) -> str:
    """Return where a program's API is: as the options say, else its variable, else in public."""
    return options.base_url or os.environ.get(variable) or PUBLIC_BASE_URLS[variable]


def label_of(api: Api, base_url: str) -> str:
    """Return what stands for the API; the same as for other clients that ask it."""
    return Endpoint(api, "", base_url, "", "").label


def say_usage(request: ClientRequest, used: Usage, api: Api | None) -> None:
    """Put what a program's model took into the trace, with what that cost.

    Args:
        request: the attempt; where it names no model, there is no price.
        used: what it took.
        api: the model's; `None` where it is not known, and only the eval's own prices count.

    """
    if request.model is not None:
        used = priced(used, request.model, request.pricing, api)
    request.trace.usage = used.to_json() or None  # type: ignore[assignment]  # it is JSON
