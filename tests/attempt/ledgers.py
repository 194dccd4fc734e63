"""A ledger that is really written to, and attempts on it, as an eval config has them."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_mst.attempt.job import AttemptJob, Target
from pytest_mst.attempt.load_check import check_evals
from pytest_mst.attempt.target import target_of
from pytest_mst.clients.client import Client
from pytest_mst.clients.scripted import ScriptedClient
from pytest_mst.domain.case import Case
from pytest_mst.domain.errors import Place
from pytest_mst.domain.eval_config import EvalConfig
from pytest_mst.domain.loaded import LoadedCase, LoadedEval
from pytest_mst.proxy.hub import Hub
from pytest_mst.store.append import RunWriter
from pytest_mst.store.layout import RunLayout
from tests.attempt.setting import RUN_ID, job

SERVER = Path(__file__).parents[1] / "plugin" / "servers" / "ledger.py"
MARKER = {"marker": "{{trial.id}}"}
ADD = {"call": {"server": "ledger", "tool": "add", "arguments": {**MARKER, "text": "paid"}}}
DONE = {"answer": "done"}
SEED = {"server": "ledger", "tool": "add", "arguments": {**MARKER, "text": "seed"}}
PURGE = {"server": "ledger", "tool": "purge", "arguments": MARKER}
FOUND = {"server": "ledger", "tool": "find", "arguments": MARKER, "containsText": "paid"}
WRITES_AND_FINDS = {"expected": {"writes": [{"tool": "add"}], "outcome": [FOUND]}}


class Ledger:
    """The database, and the eval that writes to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "ledger.db"

    @property
    def entries(self) -> list[str]:
        """The texts of what is in it."""
        return [text for (text,) in self._rows("SELECT text FROM entry ORDER BY rowid")]

    @property
    def calls(self) -> list[str]:
        """The tools that were called, in order, whoever called them."""
        return [tool for (tool,) in self._rows("SELECT tool FROM call ORDER BY rowid")]

    @property
    def markers(self) -> set[str]:
        """The markers that calls were made with."""
        return {marker for (marker,) in self._rows("SELECT marker FROM call")}

    def _rows(self, query: str) -> list[tuple[str, ...]]:
        if not self.path.exists():
            return []
        with sqlite3.connect(self.path, timeout=20) as db:
            found: list[tuple[str, ...]] = db.execute(query).fetchall()
        db.close()
        return found

    def server(self, *words: str, **more: Any) -> dict[str, Any]:
        """Return the server's definition."""
        args = ["-IS", str(SERVER), str(self.path), *words]
        return {"transport": "stdio", "command": "python", "args": args, **more}

    def config(self, *words: str, server: Mapping[str, Any] = {}, **keys: Any) -> dict[str, Any]:
        """Return the content of an eval config in which the ledger is live."""
        return {
            "name": "team",
            "servers": {"ledger": self.server(*words, **server)},
            "writes": {"ledger": "live"},
            "setup": [SEED],
            "cleanup": [PURGE],
            **keys,
        }

    def loaded(
        self, *words: str, cases: Sequence[Mapping[str, Any]] = (), **keys: Any
    ) -> LoadedEval:
        """Return an eval as if read from a file."""
        path = self.folder / "team.eval.json"
        config = EvalConfig.model_validate(self.config(*words, **keys))
        read = [
            LoadedCase(
                Case.model_validate({"id": f"c{number}", "input": "pay {{trial.id}}", **one}),
                "team",
                Place(str(path), 10 + number, f"cases[{number}]"),
            )
            for number, one in enumerate(cases)
        ]
        places = {key: Place(str(path), line, key) for line, key in enumerate(keys, 2)}
        return LoadedEval(path, config, tuple(read), (), {"": Place(str(path), 1), **places})

    async def target(
        self, hub: Hub, *words: str, client: Client | None = None, case: Mapping[str, Any], **k: Any
    ) -> Target:
        """Load an eval with one case, and return what that is put to."""
        loaded = self.loaded(*words, cases=[case], **k)
        variant = loaded.config.variants_or_default[0]
        prepared = await check_evals({loaded.path: (loaded, [variant])}, hub, {}, allow_live=True)
        acting = client or ScriptedClient([ADD, DONE])
        return target_of(prepared[loaded.path], variant, acting, {}, log_path=None, run="r")

    async def job(
        self,
        hub: Hub,
        *words: str,
        case: Mapping[str, Any] = WRITES_AND_FINDS,
        fields: Mapping[str, Any] = {},
        **keys: Any,
    ) -> AttemptJob:
        """Load an eval with one case, and return an attempt at it."""
        target = await self.target(hub, *words, case=case, **keys)
        read = Case.model_validate({"id": "c", "input": "x", **case})
        return job(target.for_case(read), {"input": "pay {{trial.id}}", **case}, **fields)

    @property
    def writer(self) -> RunWriter:
        """Return where attempts are stored."""
        return RunWriter(RunLayout(self.folder, "team", RUN_ID))
