"""An error that comes inside a stream that has begun, with no HTTP status of its own."""

from __future__ import annotations

import anyio
import pytest

from pytest_mst.domain.ending import Broke, InfrastructureError
from pytest_mst.domain.retry import RetryKind
from pytest_mst.providers.endpoint import Api
from tests.model_provider import Answer, ModelProvider
from tests.providers.asking import Waiting, asked_again, endpoint

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("api", "error", "kind"),
    [
        ("anthropic", "overloaded_error", RetryKind.OVERLOADED),
        ("anthropic", "rate_limit_error", RetryKind.RATE_LIMIT),
        ("openai", "rate_limit_exceeded", RetryKind.RATE_LIMIT),
        ("openai-responses", "rate_limit_exceeded", RetryKind.RATE_LIMIT),
    ],
)
async def test_it_is_known_by_its_type(api: Api, error: str, kind: RetryKind) -> None:
    waiting = Waiting(tries=1)
    with (
        ModelProvider([Answer(stream_error=error)]) as provider,
        anyio.fail_after(20),
        pytest.raises(InfrastructureError) as raised,
    ):
        await asked_again(endpoint(provider, api), stream=True, waiting=waiting)
    assert raised.value.failure.broke is Broke.PROVIDER
    assert raised.value.failure.retryable
    assert waiting.waits[0][1].kind is kind
