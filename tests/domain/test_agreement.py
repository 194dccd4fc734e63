"""The agreement of trace and write record, stored and read back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.domain.agreement import Agreement, agreement_from_json
from pytest_mst.domain.trace import TraceEvent
from pytest_mst.domain.write import WriteEntry
from tests.store.records import entries, entry, json_objects, texts

UNRECORDED = st.builds(TraceEvent, name=texts, server=st.none() | texts, arguments=json_objects)


@given(
    st.lists(st.tuples(entries, st.booleans()), max_size=4),
    st.lists(UNRECORDED, max_size=2).map(tuple),
    st.booleans(),
    st.integers(0, 99),
)
def test_an_agreement_is_read_back_as_it_was_written(
    recorded: list[tuple[WriteEntry, bool]],
    unrecorded: tuple[TraceEvent, ...],
    checked: bool,
    unclassified: int,
) -> None:
    unreported = tuple(one for one, is_left_over in recorded if is_left_over)
    given = Agreement(checked, unreported, unrecorded, unclassified)
    stored = json.loads(json.dumps(given.to_json()))
    read = agreement_from_json(stored, [one for one, _ in recorded])
    assert (read.checked, read.unrecorded, read.unclassified) == (checked, unrecorded, unclassified)
    assert [one.effective for one in read.unreported] == [one.effective for one in unreported]
    assert read.to_json() == given.to_json()


def test_equal_writes_are_told_apart_by_how_many_there_are() -> None:
    record = [entry(0), entry(1), entry(2, arguments={"channel": "#b"})]
    stored = Agreement(checked=True, unreported=tuple(record[:2])).to_json()
    assert agreement_from_json(stored, record).unreported == tuple(record[:2])
    with pytest.raises(ValueError, match="unreportedWrites"):
        agreement_from_json(stored, record[1:])


@pytest.mark.parametrize("wrong", [{"unclassifiedCalls": "1"}, {"unrecordedWrites": [{}]}], ids=str)
def test_what_is_no_agreement_is_refused(wrong: dict[str, object]) -> None:
    stored = {**Agreement(checked=True).to_json(), **wrong}
    with pytest.raises(ValueError):  # noqa: PT011 - its text is for people
        agreement_from_json(stored, ())
