"""Which API a model is asked by, told from its id, the options and the environment."""

from __future__ import annotations

import pytest

from pytest_mst.domain.ending import Broke, Scope
from pytest_mst.providers.endpoint import Api, EndpointError, MissingKeyError, endpoint_for

KEYS = {
    "ANTHROPIC_API_KEY": "secret-anthropic",
    "OPENAI_API_KEY": "secret-openai",
    "GEMINI_API_KEY": "secret-gemini",
}


@pytest.mark.parametrize(
    ("model", "api", "name", "address"),
    [
        ("claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5", "https://api.anthropic.com"),
        ("gpt-5-mini", "openai", "gpt-5-mini", "https://api.openai.com/v1"),
        ("o3", "openai", "o3", "https://api.openai.com/v1"),
        ("openai-responses:gpt-5", "openai-responses", "gpt-5", "https://api.openai.com/v1"),
        ("anthropic:my-own", "anthropic", "my-own", "https://api.anthropic.com"),
        (
            "gemini-2.5-flash",
            "google",
            "gemini-2.5-flash",
            "https://generativelanguage.googleapis.com",
        ),
    ],
)
def test_the_id_of_a_model_tells_its_api(model: str, api: Api, name: str, address: str) -> None:
    found = endpoint_for(model, {}, KEYS)
    assert (found.api, found.model, found.base_url) == (api, name, address)


def test_options_come_before_the_environment_and_that_before_the_public_address() -> None:
    environ = KEYS | {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "MINE": "secret-mine"}
    by_env = endpoint_for("gpt-5", {}, environ)
    assert by_env.base_url == "http://127.0.0.1:1/v1"
    options = {"provider": "openai", "baseUrl": "http://127.0.0.1:2/v1/", "apiKeyEnv": "MINE"}
    stated = endpoint_for("llama3:8b", options, environ)
    assert (stated.model, stated.base_url) == ("llama3:8b", "http://127.0.0.1:2/v1")
    assert (stated.key_env, stated.key) == ("MINE", "secret-mine")


def test_a_key_that_is_not_set_names_the_variable_the_model_and_the_way_out() -> None:
    with pytest.raises(MissingKeyError) as raised:
        endpoint_for("claude-sonnet-4-5", {}, {})
    assert raised.value.variables == ("ANTHROPIC_API_KEY",)
    assert raised.value.model == "claude-sonnet-4-5"
    assert str(raised.value) == (
        "ANTHROPIC_API_KEY is not set: model 'claude-sonnet-4-5' cannot be asked; set it, or name"
        " another variable with apiKeyEnv"
    )
    failure = raised.value.as_failure()
    assert (failure.broke, failure.retryable, failure.scope) == (Broke.SETUP, False, Scope.VARIANT)
    with pytest.raises(MissingKeyError, match="none of GEMINI_API_KEY, GOOGLE_API_KEY is set"):
        endpoint_for("gemini-2.5-flash", {}, {"GEMINI_API_KEY": ""})


@pytest.mark.parametrize(
    ("model", "options", "key"),
    [
        (None, {}, "model"),
        ("llama3", {}, "model"),
        ("gpt-5", {"provider": "azure"}, "provider"),
        ("gpt-5", {"baseUrl": "127.0.0.1:80"}, "baseUrl"),
        ("gpt-5", {"baseUrl": 3}, "baseUrl"),
        ("gpt-5", {"apiKeyEnv": " "}, "apiKeyEnv"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(
    model: str | None, options: dict[str, object], key: str
) -> None:
    with pytest.raises(EndpointError) as raised:
        endpoint_for(model, options, KEYS)
    assert raised.value.key == key
    assert key in str(raised.value)


def test_no_key_and_no_path_is_shown() -> None:
    environ = KEYS | {"OPENAI_BASE_URL": "http://user:pw@127.0.0.1:9/token-in-path/v1"}
    found = endpoint_for("gpt-5", {}, environ)
    assert found.label == "openai at http://127.0.0.1:9"
    assert "secret-openai" not in repr(found)


@pytest.mark.parametrize("key", ["with blank", "sk-123\n", "schlüssel"])
def test_a_key_that_no_request_can_hold_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(EndpointError) as raised:
        endpoint_for("gpt-5", {}, {"OPENAI_API_KEY": key})
    assert raised.value.key == "OPENAI_API_KEY"
    assert key.strip() not in str(raised.value)
