"""The write records of connections that attempts share, and what of them is nobody's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.write import WriteEntry
from pytest_mst.store.connections import unattributed_writes
from tests.store.records import attempt_id, entry, writer_in

CASE = attempt_id(0, "a")


def record(folder: Path, *entries: WriteEntry, name: str = "c1") -> Path:
    """Record writes over a connection of the default variant; return its file."""
    writer = writer_in(folder)
    file = writer.connection_file("default", name)
    for one in entries:
        file.record(one)
    file.close()
    return Path(writer.layout.connection_file("default", name))


def test_what_was_given_to_nobody_is_read_back_from_all_connections(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    first, second, third = (entry(seq) for seq in range(3))
    record(tmp_path, first, second)
    record(tmp_path, third, name="c2")
    file = writer.connection_file("default", "c1")
    file.give([second], CASE)
    file.close()
    assert unattributed_writes(writer.layout, "default").entries == (first, third)
    assert unattributed_writes(writer.layout, "another").entries == ()


def test_the_number_of_an_entry_counts_in_its_own_connection_only(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    for name in ("c1", "c2"):
        record(tmp_path, entry(0), name=name)
    file = writer.connection_file("default", "c1")
    file.give([entry(0)], CASE)
    file.close()
    assert len(unattributed_writes(writer.layout, "default").entries) == 1


@pytest.mark.parametrize(
    "torn", ['{"format": "mst.wr', '{"kind": "given", "seq": "x"}', "[]", "{}"]
)
def test_a_line_that_cannot_be_read_is_told_and_the_others_are_read(
    tmp_path: Path, torn: str
) -> None:
    path = record(tmp_path, entry(0))
    with path.open("a", encoding="ascii") as file:
        file.write(torn)
    record(tmp_path, entry(1))
    found = unattributed_writes(writer_in(tmp_path).layout, "default")
    assert [one.seq for one in found.entries] == [0, 1]
    assert [one.line for one in found.torn] == [2]


def test_a_run_without_shared_connections_has_none_and_makes_no_folder(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    writer.connection_file("default", "c1").close()
    assert unattributed_writes(writer.layout, "default").entries == ()
    assert not writer.layout.connections_dir("default").exists()


def test_a_folder_in_the_place_of_a_record_is_an_error(tmp_path: Path) -> None:
    layout = writer_in(tmp_path).layout
    Path(layout.connection_file("default", "c1")).mkdir(parents=True)
    with pytest.raises(StoreError):
        unattributed_writes(layout, "default")


def test_a_secret_is_in_no_record_of_a_connection(tmp_path: Path) -> None:
    writer = writer_in(tmp_path, secrets=("open-sesame",))
    file = writer.connection_file("default", "c1")
    file.record(entry(0, arguments={"say": "open-sesame"}))
    file.close()
    text = Path(writer.layout.connection_file("default", "c1")).read_text(encoding="ascii")
    assert "open-sesame" not in text
    assert json.loads(text)["arguments"] == {"say": "[redacted]"}
