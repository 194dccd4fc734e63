"""Names of variants, cases and graders as parts of paths and node ids."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_mst.domain.run import AttemptId
from pytest_mst.store.layout import RunLayout
from pytest_mst.store.names import NODE_LIMIT_CHARS, PATH_LIMIT_BYTES, node_name, safe_name
from pytest_mst.store.run_id import new_run_id, short_form
from tests.store.records import RUN_ID, texts

ODD_NAMES = [
    "../escaped",
    "..",
    ".",
    "/etc/passwd",
    "a/../../b",
    "Create",
    "create",
    'a:b?c*d|e"f<g>h',
    "CON",
    "con",
    "nul.txt",
    "com1",
    "lpt9.tar.gz",
    "a.",
    "a ",
    " lead",
    "-rf",
    ".hidden",
    "",
    "   ",
    "x" * 300,
    "x" * 300 + "y",
    "日本語",
    "a\u0000b",
    "\ud83d",
    "\udcff",
    "caf\u00e9",
    "cafe\u0301",
]
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


@pytest.mark.parametrize("name", ["post-summary", "a", "a_b.c-d", "2026-01-01", "_x", "x" * 100])
def test_a_plain_name_stays_as_it_is(name: str) -> None:
    assert safe_name(name) == name
    assert node_name(name) == name


def test_node_names_keep_upper_case() -> None:
    assert node_name("Create") == "Create"
    assert node_name("-rf.") == "-rf."


@given(st.one_of(texts, st.sampled_from(ODD_NAMES), st.text(max_size=400)))
@example("com0")
def test_a_safe_name_is_safe(name: str) -> None:
    safe = safe_name(name)
    assert re.fullmatch(r"[A-Za-z0-9_.-]+", safe)
    assert len(safe) <= PATH_LIMIT_BYTES
    assert safe[0] not in ".-"
    assert safe[-1] != "."
    assert not _DEVICES.fullmatch(safe)
    assert re.fullmatch(r"[A-Za-z0-9_.-]+", node_name(name))
    assert len(node_name(name)) <= NODE_LIMIT_CHARS


@given(st.lists(st.one_of(texts, st.sampled_from(ODD_NAMES)), unique=True, max_size=30))
def test_different_names_stay_different_where_case_is_ignored(names: list[str]) -> None:
    assert len({safe_name(name).casefold() for name in names}) == len(names)
    assert len({node_name(name) for name in names}) == len(names)


@given(texts)
def test_no_name_can_be_taken_for_what_another_name_became(name: str) -> None:
    for made in (safe_name, node_name):
        became = made(name)
        if became != name:
            assert made(became) != became
            assert made(became.lower()).casefold() != became.casefold()


def test_all_odd_names_get_names_of_their_own() -> None:
    assert len({safe_name(name).casefold() for name in ODD_NAMES}) == len(ODD_NAMES)


@given(st.one_of(texts, st.sampled_from(ODD_NAMES)), st.one_of(texts, st.sampled_from(ODD_NAMES)))
def test_no_name_leaves_the_runs_folder(name: str, run_id: str) -> None:
    root = Path("/results")
    layout = RunLayout(root, name, run_id)
    attempt = AttemptId(name, name, 3)
    for path in (
        layout.run_json,
        layout.trace(attempt),
        layout.writes(attempt),
        layout.score(name, attempt),
        layout.server_log(name, name),
    ):
        assert ".." not in path.parts
        assert path.is_relative_to(layout.run_dir)
    assert layout.run_dir.parent == layout.eval_dir / "runs"
    assert layout.eval_dir.parent == root
    assert layout.latest_json.parent == layout.eval_dir


def test_files_are_where_readers_look_for_them() -> None:
    layout = RunLayout(Path(".mst-results"), "team-chat", RUN_ID)
    run = f".mst-results/team-chat/runs/{RUN_ID}"
    attempt = AttemptId("default", "post-summary", 0)
    assert layout.latest_json == Path(".mst-results/team-chat/latest.json")
    assert str(layout.run_json) == f"{run}/run.json"
    assert str(layout.summary_json) == f"{run}/summary.json"
    assert str(layout.results_json) == f"{run}/results.json"
    assert str(layout.journal) == f"{run}/journal.jsonl"
    assert str(layout.trace(attempt)) == f"{run}/traces/default/post-summary/0.json"
    assert str(layout.writes(attempt)) == f"{run}/writes/default/post-summary/0.jsonl"
    score = layout.score("writes", attempt)
    assert str(score) == f"{run}/scores/writes/default/post-summary/0.json"


def test_run_ids_of_one_second_differ() -> None:
    now = datetime(2026, 11, 30, 9, 45, tzinfo=UTC)
    ids = [new_run_id(now) for _ in range(5)]
    assert len(set(ids)) == 5
    assert all(re.fullmatch(r"20261130T094500Z-[0-9a-f]{6}", one) for one in ids)
    assert short_form(RUN_ID) == "7f3c2a"
