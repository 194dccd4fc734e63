"""Writing the write record of a connection that attempts share.

It has the entries as they were recorded, and after them, once it is known, whose they are.
Nothing is taken out of it: an entry that is given to an attempt is in that attempt's own record,
too. So a process that is killed in between loses none.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_mst.domain.run import AttemptId
from pytest_mst.domain.write import WriteEntry
from pytest_mst.store.line_file import LineFile
from pytest_mst.store.redact import Redactor

GIVEN = "given"
"""The kind of the lines that say whose an entry is."""


class ConnectionFile:
    """The write record of one shared connection, on disk. The first entry makes the file."""

    def __init__(self, path: str, redactor: Redactor) -> None:
        self._file = LineFile(path)
        self._redactor = redactor

    def record(self, entry: WriteEntry) -> None:
        """Record a write.

        Raises:
            StoreError: the write is not recorded, so it must not be answered as done.

        """
        self._file.append(self._redactor.json_text(entry.to_json()))

    def give(self, entries: Sequence[WriteEntry], attempt: AttemptId) -> None:
        """Note whose entries are, after they are in that attempt's own record.

        Args:
            entries: with the `seq` that they have in this record.
            attempt: whose they are.

        Raises:
            StoreError: it is not noted for all of them.

        """
        for entry in entries:
            line = {
                "format": "mst.write/v1",
                "kind": GIVEN,
                "seq": entry.seq,
                "caseId": attempt.case,
                "trial": attempt.trial,
            }
            self._file.append(self._redactor.json_text(line, ("caseId",)))

    def close(self) -> None:
        """Close the file."""
        self._file.close()
