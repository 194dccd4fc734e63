from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pytest_mst.domain.eval_config import EvalConfig, HttpServer, StdioServer


def config(**parts: Any) -> EvalConfig:
    return EvalConfig.model_validate({"name": "team", **parts})


def test_an_eval_without_variants_has_one_called_default() -> None:
    assert [one.name for one in config().variants_or_default] == ["default"]
    named = config(variants=[{"name": "a"}, {"name": "b"}])
    assert [one.name for one in named.variants_or_default] == ["a", "b"]


def test_a_path_is_short_for_a_file() -> None:
    short, long = config(datasets=["x.json"]), config(datasets=[{"type": "file", "path": "x.json"}])
    assert short.datasets == long.datasets


def test_what_is_not_said_has_the_documented_value() -> None:
    empty = config()
    assert (empty.trials, empty.pass_threshold, empty.timeout) == (1, 1.0, 300_000)
    assert (empty.client, empty.writes) == ("scripted", "planned")
    assert empty.results.store.dir == ".mst-results"


def test_the_transport_decides_what_a_server_has() -> None:
    servers = config(
        servers={
            "a": {"transport": "stdio", "command": "python"},
            "b": {"transport": "http", "serverUrl": "http://x"},
        }
    ).servers
    assert isinstance(servers["a"], StdioServer)
    assert isinstance(servers["b"], HttpServer)
    with pytest.raises(ValidationError, match="serverUrl"):
        config(servers={"a": {"transport": "stdio", "command": "x", "serverUrl": "http://x"}})


@pytest.mark.parametrize("writes", ["planned", "simulated", {"a": "live"}, {"a": "unguarded"}, {}])
def test_write_modes_are_stated_for_all_servers_or_by_label(writes: object) -> None:
    assert config(writes=writes).writes == writes
    assert config(variants=[{"name": "v", "writes": writes}]).variants[0].writes == writes


@pytest.mark.parametrize("writes", ["live", "unguarded", "read-only", None, [], 1])
def test_a_mode_that_needs_care_is_never_stated_for_all_servers(writes: object) -> None:
    with pytest.raises(ValidationError, match="a mode for each label"):
        config(writes=writes)


@pytest.mark.parametrize("protocol", ["legacy", "auto", "2025-06-18"])
def test_a_protocol_is_a_word_or_a_revision(protocol: str) -> None:
    server = {"transport": "stdio", "command": "x", "protocol": protocol}
    assert config(servers={"a": server}).servers["a"].protocol == protocol


@pytest.mark.parametrize("text", ["", "server", "a:b:c", "a b:c", "a:", ":b", "a:b\n"])
def test_a_server_object_is_a_module_and_an_attribute(text: str) -> None:
    with pytest.raises(ValidationError, match="module:attribute"):
        config(servers={"a": {"transport": "python", "object": text}})
