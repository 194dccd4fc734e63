"""The load check, against real servers: every write accounted for, or nothing starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from pytest_mst.attempt.load_check import check_evals, needed_labels, upstream_specs
from pytest_mst.attempt.prepared import PreparedEval, servers_from_json, servers_to_json
from pytest_mst.attempt.target import target_of
from pytest_mst.attempt.write_modes import write_modes
from pytest_mst.clients.scripted import ScriptedClient
from pytest_mst.domain.ending import Broke, Scope
from pytest_mst.domain.errors import LoadCheckError
from pytest_mst.domain.eval_config import Variant
from pytest_mst.domain.loaded import LoadedEval
from pytest_mst.domain.write import WriteMode
from pytest_mst.eval_files.environment import ReferenceProblemError
from pytest_mst.proxy.hub import Hub
from tests.attempt.evals import eval_of
from tests.attempt.servers.small import READS, WRITES
from tests.attempt.setting import small_config

pytestmark = pytest.mark.anyio


async def prepare(
    *evals: LoadedEval, objects: Mapping[str, object] | None = None
) -> list[PreparedEval]:
    """Check evals with all of their variants."""
    given: dict[Path, tuple[LoadedEval, Sequence[Variant]]] = {
        one.path: (one, one.config.variants_or_default) for one in evals
    }
    with anyio.fail_after(30):
        async with Hub() as hub:
            prepared = await check_evals(given, hub, {"TOKEN": "secret"}, objects or {})
    assert list(prepared) == list(given)
    return list(prepared.values())


async def test_every_server_is_listed_and_says_what_it_is(tmp_path: Path) -> None:
    (prepared,) = await prepare(eval_of(tmp_path, servers={"notes": small_config()}))
    state = prepared.servers["notes"]
    assert list(state.tools) == [tool["name"] for tool in [*READS, *WRITES]]
    assert (state.name, state.version, state.failure) == ("small", "7", None)
    assert state.protocol is not None
    assert servers_from_json(servers_to_json(prepared.servers)) == dict(prepared.servers)


async def test_a_server_whose_tools_all_read_is_read_only_and_others_are_planned(
    tmp_path: Path,
) -> None:
    loaded = eval_of(
        tmp_path, servers={"notes": small_config(), "docs": small_config("--reads-only")}
    )
    (prepared,) = await prepare(loaded)
    modes = write_modes(loaded, Variant(name="default"), prepared.servers)
    assert modes == {"notes": WriteMode.PLANNED, "docs": WriteMode.READ_ONLY}


async def test_a_server_that_writes_and_has_no_mode_is_refused_with_its_tools(
    tmp_path: Path,
) -> None:
    loaded = eval_of(
        tmp_path,
        servers={"notes": small_config(), "docs": small_config("--reads-only")},
        writes={"docs": "planned"},
    )
    with pytest.raises(LoadCheckError) as caught:
        await prepare(loaded)
    error = caught.value
    assert error.server == "notes"
    assert error.tools == ("write_note", "purge", "write_slowly")
    assert error.place.file.endswith("team.eval.json")
    assert error.remedy is not None
    assert "`notes: planned`" in error.remedy
    assert all(tool in str(error) for tool in error.tools)


async def test_the_configs_word_on_tools_settles_what_a_server_needs(tmp_path: Path) -> None:
    reads = small_config(readOnlyTools=["write_note", "purge", "write_slowly"])
    writes = small_config("--reads-only", alwaysWriteTools=["fail"])
    (prepared,) = await prepare(eval_of(tmp_path, servers={"notes": reads}, writes={}))
    assert prepared.servers["notes"].failure is None
    with pytest.raises(LoadCheckError) as caught:
        await prepare(eval_of(tmp_path, servers={"docs": writes}, writes={}))
    assert caught.value.tools == ("fail",)


async def test_a_server_that_cannot_start_is_kept_as_the_failure_of_its_variants(
    tmp_path: Path,
) -> None:
    loaded = eval_of(
        tmp_path,
        servers={"gone": small_config("--exit-on-start", "4"), "notes": small_config()},
        variants=[{"name": "a", "servers": ["notes"]}, {"name": "b"}],
    )
    (prepared,) = await prepare(loaded)
    failure = prepared.servers["gone"].failure
    assert failure is not None
    assert (failure.broke, failure.retryable, failure.scope) == (Broke.SETUP, True, Scope.VARIANT)
    assert "boom: cannot start" in (failure.detail or "")
    assert servers_from_json(servers_to_json(prepared.servers)) == dict(prepared.servers)
    a, b = (
        target_of(prepared, variant, ScriptedClient(), {}, log_path=None)
        for variant in loaded.config.variants
    )
    assert a.failure is None
    assert b.failure == failure
    assert b.modes == {"gone": WriteMode.PLANNED, "notes": WriteMode.PLANNED}


async def test_a_server_that_cannot_start_is_no_refusal_where_it_has_no_mode_either(
    tmp_path: Path,
) -> None:
    servers = {"gone": small_config("--exit-on-start", "4")}
    (prepared,) = await prepare(eval_of(tmp_path, servers=servers, writes={}))
    assert prepared.servers["gone"].failure is not None


async def test_an_unguarded_server_is_accepted_by_its_label(tmp_path: Path) -> None:
    loaded = eval_of(tmp_path, servers={"notes": small_config()}, writes={"notes": "unguarded"})
    (prepared,) = await prepare(loaded)
    (variant,) = loaded.config.variants_or_default
    target = target_of(prepared, variant, ScriptedClient(), {}, log_path=None)
    assert target.modes == {"notes": WriteMode.UNGUARDED}
    assert target.unguarded


async def test_variants_that_answer_a_write_differently_are_refused(tmp_path: Path) -> None:
    loaded = eval_of(
        tmp_path,
        servers={"notes": small_config(), "docs": small_config("--reads-only")},
        variants=[{"name": "a"}, {"name": "b", "writes": "simulated"}],
    )
    with pytest.raises(LoadCheckError) as caught:
        await prepare(loaded)
    assert caught.value.server == "notes"
    assert "variant 'a': notes planned" in caught.value.problem
    assert "variant 'b': notes simulated" in caught.value.problem
    assert "docs" not in caught.value.problem


async def test_only_servers_that_a_chosen_variant_uses_are_started(tmp_path: Path) -> None:
    loaded = eval_of(
        tmp_path,
        servers={"gone": {**small_config(), "command": "no-such-command"}, "notes": small_config()},
        variants=[{"name": "a", "servers": ["notes"]}, {"name": "b", "servers": ["gone", "notes"]}],
    )
    a, b = loaded.config.variants
    assert needed_labels(loaded, [a]) == ("notes",)
    assert needed_labels(loaded, [b, a]) == ("gone", "notes")
    async with Hub() as hub:
        prepared = await check_evals({loaded.path: (loaded, [a])}, hub, {})
    assert list(prepared[loaded.path].servers) == ["notes"]


async def test_several_evals_are_listed_side_by_side(tmp_path: Path) -> None:
    """No server answers before all five, of both evals, have been started."""
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    config = small_config("--meet", str(meeting), "5")
    evals = [
        eval_of(tmp_path / name, servers=dict.fromkeys(labels, config))
        for name, labels in {"one": ["b", "a"], "two": ["a", "c", "b"]}.items()
    ]
    first, second = await prepare(*evals)
    assert list(first.servers) == ["b", "a"]
    assert list(second.servers) == ["a", "c", "b"]
    assert all(len(one.tools) == len([*READS, *WRITES]) for one in first.servers.values())
    assert all(len(one.tools) == len([*READS, *WRITES]) for one in second.servers.values())


async def test_a_server_object_in_this_process_stands_in_for_the_configs(tmp_path: Path) -> None:
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("mine")

    @server.tool()
    def erase(text: str) -> str:
        return text

    config = {"transport": "python", "object": "nowhere:server"}
    (prepared,) = await prepare(
        eval_of(tmp_path, servers={"mine": config}), objects={"mine": server}
    )
    assert list(prepared.servers["mine"].tools) == ["erase"]
    (without,) = await prepare(eval_of(tmp_path, servers={"mine": config}))
    failure = without.servers["mine"].failure
    assert failure is not None
    assert "nowhere" in failure.reason


def test_secrets_are_put_in_where_servers_are_opened_only(tmp_path: Path) -> None:
    loaded = eval_of(tmp_path, servers={"notes": small_config(env={"T": "${TOKEN}"})})
    specs = upstream_specs(
        loaded, ["notes"], {"TOKEN": "s3cret"}, log_path=lambda label: tmp_path / label
    )
    config: Any = specs["notes"].config
    assert config.env == {"T": "s3cret"}
    assert specs["notes"].log_path == tmp_path / "notes"
    assert specs["notes"].base_dir == tmp_path
    with pytest.raises(ReferenceProblemError, match="TOKEN is not set"):
        upstream_specs(loaded, ["notes"], {})
