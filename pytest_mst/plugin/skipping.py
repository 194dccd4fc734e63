"""Cases that a mark, a fixture or a body skips while they run.

Such a case is outside the ledger, but for one of which something is stored or was made before
the skip was met: that stands as it is, nothing more is made of the case, and it counts.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from pytest_mst.attempt.job import Again
from pytest_mst.domain.resumption import Decision, Step
from pytest_mst.plugin.case_item import CaseItem
from pytest_mst.plugin.keys import SESSION
from pytest_mst.plugin.outcomes import NOTE_REASON_CHARS, SkipNote


def skip_in(reports: Iterable[pytest.TestReport]) -> pytest.TestReport | None:
    """Return the report that skipped an item, if one did; what is torn down skips nothing."""
    return next((one for one in reports if one.skipped and one.when != "teardown"), None)


def reason_of(skipped: pytest.TestReport) -> str:
    """Return why an item was skipped, in a few words."""
    longrepr = skipped.longrepr
    reason = str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr)
    return reason[:NOTE_REASON_CHARS]


def note_skip(case: CaseItem, skipped: pytest.TestReport) -> None:
    """Note on the report that skipped a case which case is outside the ledger."""
    note = SkipNote(case.run.run_id, case.variant.name, case.case.id, reason_of(skipped))
    skipped.user_properties.append(note.to_property())


def keep_as_stored(case: CaseItem) -> None:
    """Leave what is stored of a case that is skipped as it is, and make nothing more of it."""
    kept = Again(Decision(Step.KEEP, "its case is skipped"), stamp="")
    case.again = dict.fromkeys(range(case.trials), kept)


def give_up_all(item: pytest.Item, case: CaseItem) -> None:
    """Cut short what was begun ahead of a case that turned out to be skipped."""
    for trial in range(case.trials):
        item.config.stash[SESSION].engine.give_up(case.stored_job(trial))
