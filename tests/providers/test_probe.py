"""An endpoint is tried once before anything is paid for, and only what is certain stops a run."""

from __future__ import annotations

import anyio
import pytest

from pytest_mst.domain.ending import Broke
from pytest_mst.providers.endpoint import Api
from pytest_mst.providers.probe import probe
from tests.model_provider import Fail, ModelProvider, Raw
from tests.providers.asking import EVERY_API, endpoint

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("api", EVERY_API)]


async def test_a_model_that_is_there_is_found_without_asking_it(api: Api) -> None:
    with ModelProvider(models={"test-model"}) as provider, anyio.fail_after(20):
        assert await probe(endpoint(provider, api)) is None
        assert provider.asked == []
        assert len(provider.other) == 1


async def test_a_key_that_is_refused_is_said_with_its_variable(api: Api) -> None:
    with ModelProvider(keys={"another"}) as provider, anyio.fail_after(20):
        failure = await probe(endpoint(provider, api))
    assert failure is not None
    assert (failure.broke, failure.retryable) == (Broke.PROVIDER, False)
    assert endpoint(provider, api).key_env in failure.reason
    assert "test-model" in failure.reason
    assert "loopback-key" not in failure.reason


async def test_an_unknown_model_is_certain_once_it_was_asked(api: Api) -> None:
    with ModelProvider(models={"another"}) as provider, anyio.fail_after(20):
        failure = await probe(endpoint(provider, api))
        assert len(provider.asked) == 1
    assert failure is not None
    assert (failure.broke, failure.retryable) == (Broke.SETUP, False)


async def test_a_server_that_lists_no_models_is_no_failure(api: Api) -> None:
    with ModelProvider(lists_models=False) as provider, anyio.fail_after(20):
        assert await probe(endpoint(provider, api)) is None
        assert len(provider.asked) == 1


@pytest.mark.parametrize("status", [429, 503, 500])
async def test_a_busy_api_is_no_failure(api: Api, status: int) -> None:
    with ModelProvider([Fail(status)], lists_models=False) as provider, anyio.fail_after(20):
        assert await probe(endpoint(provider, api)) is None


async def test_nobody_there_is_not_certain(api: Api) -> None:
    with ModelProvider() as provider:
        place = endpoint(provider, api)
    with anyio.fail_after(20):
        assert await probe(place) is None


async def test_an_address_with_no_such_api_is_said_as_that(api: Api) -> None:
    step = Raw(404, {"detail": "Not Found"})
    with ModelProvider([step], lists_models=False) as provider, anyio.fail_after(20):
        failure = await probe(endpoint(provider, api))
    assert failure is not None
    assert "baseUrl" in failure.reason
    assert failure.retryable is False


async def test_a_key_that_gemini_calls_an_invalid_argument_is_refused_too(api: Api) -> None:
    reason = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    error = {"code": 400, "status": "INVALID_ARGUMENT", "message": "no", "details": [reason]}
    step = Raw(400, {"error": error})
    with ModelProvider([step], lists_models=False) as provider, anyio.fail_after(20):
        failure = await probe(endpoint(provider, api))
    assert failure is not None
    assert failure.broke is Broke.PROVIDER
