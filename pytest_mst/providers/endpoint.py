"""Which model API is asked, where it is, and with which key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from pytest_mst.domain.ending import Broke, InfrastructureFailure, Scope
from pytest_mst.domain.errors import MstError
from pytest_mst.domain.json_value import json_type

Api: TypeAlias = Literal["anthropic", "openai", "openai-responses", "google"]
"""`openai` is Chat Completions, which most other servers speak too."""

APIS: tuple[Api, ...] = get_args(Api)
KEYS = ("provider", "baseUrl", "apiKeyEnv")
"""What options say of an endpoint."""
_PROVIDER, _MODEL = "provider", "model"
_ANY_MODEL = "the id of a model, in the eval or with --mst-model; there is none"


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is known of an API unasked."""

    keys: tuple[str, ...]
    """The variables that hold its key; the first that is set counts."""
    base_urls: tuple[str, ...]
    """The variables that say where it is."""
    public: str


_FACTS: Mapping[Api, _Facts] = {
    "anthropic": _Facts(
        ("ANTHROPIC_API_KEY",), ("ANTHROPIC_BASE_URL",), "https://api.anthropic.com"
    ),
    "openai": _Facts(("OPENAI_API_KEY",), ("OPENAI_BASE_URL",), "https://api.openai.com/v1"),
    "openai-responses": _Facts(
        ("OPENAI_API_KEY",), ("OPENAI_BASE_URL",), "https://api.openai.com/v1"
    ),
    "google": _Facts(
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        ("GOOGLE_GEMINI_BASE_URL",),
        "https://generativelanguage.googleapis.com",
    ),
}
"""The variables are those of the APIs' own SDKs and agent CLIs."""

_BY_ID: tuple[tuple[re.Pattern[str], Api], ...] = (
    (re.compile(r"claude-"), "anthropic"),
    (re.compile(r"gpt-|chatgpt-|o[1-9](-|$)"), "openai"),
    (re.compile(r"gemini-"), "google"),
)
"""How the ids of an API's models begin."""

KEY_VARIABLES: tuple[str, ...] = tuple(
    dict.fromkeys(name for facts in _FACTS.values() for name in facts.keys)
)
"""The variables that hold keys."""

PUBLIC_BASE_URLS: Mapping[str, str] = {
    name: facts.public for facts in _FACTS.values() for name in facts.base_urls
}
"""Where the APIs are unless it is said, by the variables that say it."""


class EndpointError(MstError):
    """A model cannot be asked by what is said of it."""

    def __init__(self, key: str, expected: str) -> None:
        """Build the message.

        Args:
            key: what is said wrongly: an option, a variable, or `model`.
            expected: what it takes, and what was found.

        """
        self.key = key
        super().__init__(f"{key} takes {expected}")

    def as_failure(self) -> InfrastructureFailure:
        """Say it as the ending of every attempt that needs the model."""
        return InfrastructureFailure(
            Broke.SETUP, str(self), retryable=False, scope=Scope.VARIANT, accepted=False
        )


class MissingKeyError(EndpointError):
    """The variable that holds the key of a model API is not set."""

    def __init__(self, variables: tuple[str, ...], model: str | None) -> None:
        """Build the message from its fields.

        Args:
            variables: the variables that could hold it, of which none is set.
            model: whom it is for; `None` where its name is not known.

        """
        self.variables = variables
        self.model = model
        first, *others = variables
        whom = "the model" if model is None else f"model {model!r}"
        unset = f"{first} is not set" if not others else f"none of {', '.join(variables)} is set"
        MstError.__init__(
            self,
            f"{unset}: {whom} cannot be asked; set it, or name another variable with apiKeyEnv",
        )
        self.key = first


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model, and the API to ask it by."""

    api: Api
    model: str
    """As the API names it."""
    base_url: str
    key_env: str
    """The variable that holds the key."""
    key: str = field(repr=False)

    @property
    def shared_by(self) -> str:
        """What is the same for all that ask this model here, and are to wait together."""
        return f"{self.model}, {self.label}"

    @property
    def label(self) -> str:
        """What stands for the API to people and in files: no key, no path that may hold one."""
        return f"{self.api} at {origin_of(self.base_url)}"


def origin_of(url: str) -> str:
    """Return an address without what may let somebody in: no user, no path, no query."""
    where = urlsplit(url)
    port = "" if where.port is None else f":{where.port}"
    return f"{where.scheme}://{where.hostname}{port}"


def endpoint_for(
    model: str | None, options: Mapping[str, object], environ: Mapping[str, str]
) -> Endpoint:
    """Return what a model is asked by.

    Args:
        model: its id, as the API names it; `anthropic:claude-x` says the API too.
        options: `provider`, `baseUrl` and `apiKeyEnv`, as far as they are said.
        environ: where keys and base URLs are looked up.

    Raises:
        EndpointError: the model or the API is not known, or an option is not what it may be.
        MissingKeyError: the variable that holds the key is not set.

    """
    api, name = api_for(model, options)
    facts = _FACTS[api]
    variables = facts.keys
    stated = _text(options, "apiKeyEnv")
    if stated is not None:
        variables = (stated,)
    key_env = next((one for one in variables if environ.get(one)), None)
    if key_env is None:
        raise MissingKeyError(variables, name)
    key = environ[key_env]
    if not (key.isascii() and key.isprintable() and " " not in key):
        what = "a key of printable characters; what it holds has a blank, a line end or others"
        raise EndpointError(key_env, what)
    return Endpoint(api, name, base_url_for(api, options, environ), key_env, key)


def base_url_for(api: Api, options: Mapping[str, object], environ: Mapping[str, str]) -> str:
    """Return where an API is: as the options say, else its variable, else the public address.

    Raises:
        EndpointError: that is no address.

    """
    facts = _FACTS[api]
    said = _text(options, "baseUrl")
    key = "baseUrl"
    if said is None:
        key = next((one for one in facts.base_urls if environ.get(one)), key)
        said = environ.get(key) or facts.public
    where = urlsplit(said)
    if where.scheme not in ("http", "https") or not where.hostname:
        raise EndpointError(key, "an address such as https://models.example.com/v1")
    return said.rstrip("/")


def api_for(model: str | None, options: Mapping[str, object]) -> tuple[Api, str]:
    """Return the API of a model, and the model as that API names it.

    Raises:
        EndpointError: there is no model, or nothing says which API it is of.

    """
    valid = ", ".join(APIS)
    said = _text(options, _PROVIDER)
    stated = next((one for one in APIS if one == said), None)
    if said is not None and stated is None:
        one_of = f"one of {valid}; not {said!r}"
        raise EndpointError(_PROVIDER, one_of)
    if model is None:
        raise EndpointError(_MODEL, _ANY_MODEL)
    prefix, colon, rest = model.partition(":")
    by_prefix = next((one for one in APIS if colon and one == prefix and rest), None)
    if by_prefix is not None and stated in (None, by_prefix):
        return by_prefix, rest
    if stated is not None:
        return stated, model
    for begins, api in _BY_ID:
        if begins.match(model):
            return api, model
    problem = f"a model whose API is known; say it of {model!r} with `provider`: {valid}"
    raise EndpointError(_MODEL, problem)


def _text(options: Mapping[str, object], key: str) -> str | None:
    value = options.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        found = "a blank text" if isinstance(value, str) else json_type(value)
        raise EndpointError(key, f"a text, not {found}")
    return value
