"""The author's own server: the object itself, with no command and no eval config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from servers.notes import NOTES, server

from pytest_mst import WriteRecord


@pytest.fixture(scope="module")
def mst_config() -> Mapping[str, Any]:
    return {"name": "notes-in-python"}


@pytest.fixture(scope="module")
def mst_servers() -> Mapping[str, Any]:
    return {"notes": server}


@pytest.mark.mst
def test_a_deletion_is_held_back(dry_run_proxy: Any, write_record: WriteRecord) -> None:
    reply = dry_run_proxy.call("notes", "delete_note", {"title": "offsite"})
    assert "NOT executed" in reply["content"][0]["text"]
    write_record.one("delete_note", arguments={"title": "offsite"})
    assert "offsite" in NOTES


@pytest.mark.mst
def test_a_search_is_no_write(dry_run_proxy: Any, write_record: WriteRecord) -> None:
    reply = dry_run_proxy.call("notes", "find_notes", {"word": "release"})
    assert "2.5 in June" in reply["content"][0]["text"]
    write_record.none()
