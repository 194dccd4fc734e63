"""Following a journal while it is written."""

from __future__ import annotations

from pathlib import Path

from pytest_mst.domain.ending import Trial
from pytest_mst.store.journal_tail import JournalTail
from tests.store.records import attempt_id, writer_in


def test_only_whole_new_lines_are_read(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    tail = JournalTail(writer.layout)
    assert list(tail.new_lines()) == []
    writer.begun(attempt_id(), "@0")
    assert [line.kind for line in tail.new_lines()] == ["begun"]
    assert list(tail.new_lines()) == []
    writer.ended(attempt_id(), "@0", Trial())
    writer.close()
    journal = writer.layout.journal
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-10])
    assert list(tail.new_lines()) == []
    journal.write_bytes(whole + b"{torn\n")
    assert [line.kind for line in tail.new_lines()] == ["ended"]
    assert list(tail.new_lines()) == []


def test_a_reader_goes_on_from_where_another_one_was(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    assert JournalTail(writer.layout, from_now=True).position == 0
    writer.begun(attempt_id(0), "@0")
    position = JournalTail(writer.layout, from_now=True).position
    writer.begun(attempt_id(1), "@1")
    writer.close()
    tail = JournalTail(writer.layout, read_bytes=position)
    assert [line.id for line in tail.new_lines()] == [attempt_id(1)]
    assert tail.position == writer.layout.journal.stat().st_size
