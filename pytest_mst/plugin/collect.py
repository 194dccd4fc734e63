"""Eval files as pytest nodes: a file, its cases as collectors, a variant of each as the item."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_mst.attempt.prepared import PreparedEval
from pytest_mst.domain.errors import MstError
from pytest_mst.domain.eval_config import Variant
from pytest_mst.domain.loaded import LoadedCase
from pytest_mst.plugin.case_item import CaseItem
from pytest_mst.plugin.eval_run import source_of
from pytest_mst.plugin.keys import CASE, SESSION
from pytest_mst.plugin.outcomes import Refused
from pytest_mst.plugin.session import EvalSession
from pytest_mst.store.names import node_name


def graded_already() -> None:
    """Stand in for the test body of a case in an eval file: its graders are its assertions."""


class EvalFile(pytest.Module):
    """An eval config; a module without Python, so that fixtures of module scope have a node."""

    obj = None
    prepared: PreparedEval

    @classmethod
    def of(cls, parent: pytest.Collector, path: Path, prepared: PreparedEval) -> EvalFile:
        """Make the node of one file."""
        node: EvalFile = cls.from_parent(parent, path=path)
        node.prepared = prepared
        return node

    def collect(self) -> Iterator[CaseCollector]:
        """Yield the chosen cases, in the order of the files."""
        session = self.config.stash[SESSION]
        config = self.prepared.loaded.config
        run = session.run(config.name, self.prepared)
        run.source = source_of(self.path, session.root)
        run.available = len(self.prepared.loaded.cases) * len(config.variants_or_default)
        for one in self.prepared.loaded.tagged(session.tags(config)):
            yield CaseCollector.of(self, one)


class CaseCollector(pytest.Collector):
    """A case; its id alone on the command line selects all of its variants."""

    loaded_case: LoadedCase

    @classmethod
    def of(cls, parent: EvalFile, one: LoadedCase) -> CaseCollector:
        """Make the node of one case."""
        name = node_name(one.case.id)
        node: CaseCollector = cls.from_parent(parent, name=name, nodeid=f"{parent.nodeid}::{name}")
        node.loaded_case = one
        return node

    def collect(self) -> Iterator[EvalItem]:
        """Yield the case by each chosen variant."""
        session = self.config.stash[SESSION]
        file = self.parent
        assert isinstance(file, EvalFile)
        for variant in session.variants(file.prepared.loaded.config):
            yield EvalItem.of(self, file.prepared, variant, session)


class EvalItem(pytest.Function):
    """A case by one variant."""

    place: tuple[Path, int | None]

    @classmethod
    def of(
        cls,
        parent: CaseCollector,
        prepared: PreparedEval,
        variant: Variant,
        session: EvalSession,
    ) -> EvalItem:
        """Make the item."""
        one, config = parent.loaded_case, prepared.loaded.config
        case = session.with_model(config, variant, one.case)
        item: EvalItem = cls.from_parent(
            parent, name=node_name(variant.name), callobj=graded_already
        )
        line = one.place.line
        item.place = (parent.path, None if line is None else line - 1)
        item.add_marker("mst")
        if case.skip is not None:
            item.add_marker(pytest.mark.skip(reason=case.skip))
        client = session.client(config, variant, case)
        run = session.run(config.name, prepared)
        target = session.target(run, prepared, variant, client)
        judges = config.judges_of(variant)
        threshold = config.pass_threshold if case.pass_threshold is None else case.pass_threshold
        item.stash[CASE] = CaseItem(
            run=run,
            variant=variant,
            case=case,
            dataset=one.dataset,
            trials=session.trials(config, case.trials),
            pass_threshold=threshold,
            timeout_s=config.timeout / 1000,
            prepared=prepared,
            target=target,
            preflight=session.preflight,
            judge_entries=judges,
            registered_judges=session.judges,
            may_skip=case.skip is not None,
        )
        return item

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Say where the case is written."""
        path, line = self.place
        return path, line, self.nodeid.partition("::")[2].replace("::", " · ")


class RefusedFile(pytest.File):
    """An eval config that was not foreseen before collection, and that is wrong."""

    problem: str

    def collect(self) -> Iterator[pytest.Item]:
        """Collect nothing.

        Raises:
            Refused: always, with what is wrong.

        """
        raise Refused(self.problem)


def eval_file(parent: pytest.Collector, path: Path) -> EvalFile | RefusedFile:
    """Return the node of an eval config."""
    try:
        prepared = parent.config.stash[SESSION].prepared_at(path)
    except MstError as error:
        refused: RefusedFile = RefusedFile.from_parent(parent, path=path)
        refused.problem = str(error)
        return refused
    return EvalFile.of(parent, path, prepared)
