"""A judge that is a Python function: of the eval's own folder, or registered."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import anyio.to_thread

from pytest_mst.attempt.trial_view import FinishedTrial, Looked
from pytest_mst.attempt.unexpected import fatal_in, leaves, named
from pytest_mst.domain.attempt import AttemptRecord
from pytest_mst.domain.ending import FatalError
from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.judge import FunctionConfig, RegisteredConfig
from pytest_mst.domain.score import GradeOutcome, GraderFailure, Score
from pytest_mst.domain.write import WriteEntry
from pytest_mst.grading.returned import FULL_SCORE, graded_by
from pytest_mst.proxy.object_import import load_object
from pytest_mst.proxy.unavailable import ServerUnavailableError

JudgeFunction: TypeAlias = Callable[..., Any]
"""Takes a finished trial, and its options by name. It returns, or awaits and returns, a score, an
unknown, a boolean, a number from 0 to 1, or an object `{pass, value, reason, unknown, details}`."""


class NoFunctionError(Exception):
    """What a judge names is no function that could be called."""


_NOT_THERE = (NoFunctionError, ServerUnavailableError, ImportError, SyntaxError)
"""Why a function cannot be found; what its module raises besides is the module's own."""


@dataclass(frozen=True, slots=True)
class FunctionJudge:
    """A judge that is a Python function."""

    name: str
    load: Callable[[], JudgeFunction]
    """Finds the function; what it raises is why the judge cannot run."""
    options: Mapping[str, Any] = field(default_factory=dict)
    threshold: float = FULL_SCORE
    timeout_s: float = 300.0

    @classmethod
    def at(cls, name: str, config: FunctionConfig, folder: Path) -> FunctionJudge:
        """Return the judge that is `module:attribute`, imported when it is first needed."""
        load = functools.partial(_loaded, config.object, folder)
        return cls(name, load, config.options, _threshold(config.threshold), config.timeout / 1000)

    @classmethod
    def registered(
        cls, name: str, config: RegisteredConfig, function: JudgeFunction
    ) -> FunctionJudge:
        """Return a judge that was registered."""
        load, threshold = functools.partial(_callable, function), _threshold(config.threshold)
        return cls(name, load, config.options, threshold, config.timeout / 1000)

    @property
    def source(self) -> str:
        """The file that the function is written in; empty where that cannot be told."""
        try:
            function = self.load()
            module = inspect.getmodule(function)
            return "" if module is None else inspect.getsource(module)
        except (*_NOT_THERE, OSError, TypeError):
            return ""

    @property
    def problem(self) -> str | None:
        """Why the function cannot be called; `None` where it is there."""
        try:
            self.load()
        except ServerUnavailableError as error:
            return f"its function {error.reason}"
        except _NOT_THERE as error:
            return named(error)
        return None

    async def judge(
        self, record: AttemptRecord, writes: tuple[WriteEntry, ...]
    ) -> tuple[GradeOutcome, FatalError | None]:
        """Call the function, on a thread of its own where it is not async.

        It fails a trial by what it returns, or by an `AssertionError`; whatever else it raises
        means that it did not grade the trial, and nothing for any other.

        Returns:
            What it said; and the fatal error that it raised, if it did.

        """
        looked = Looked()
        trial = FinishedTrial(record, writes, looked)
        try:
            with anyio.fail_after(self.timeout_s):
                returned = await self._called(trial)
        except TimeoutError:
            reason = f"gave no score within {self.timeout_s:g} s (`timeout`)"
            return GraderFailure(self.name, reason), None
        if isinstance(returned, _Raised):
            return self._meant(returned.error, looked), fatal_in(returned.error)
        level = looked.level or Evidence.CLAIMED
        return graded_by(self.name, returned, threshold=self.threshold, evidence=level), None

    async def _called(self, trial: FinishedTrial) -> object:
        try:
            function = self.load()
            if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
                getattr(function, "__call__", None)  # noqa: B004 - an object may have an async one
            ):
                return await function(trial, **self.options)
            call = functools.partial(function, trial, **self.options)
            returned = await anyio.to_thread.run_sync(call, abandon_on_cancel=True)
            return await returned if inspect.isawaitable(returned) else returned
        except (GeneratorExit, anyio.get_cancelled_exc_class()):
            raise
        except BaseException as error:  # noqa: BLE001 - around one judge, which may call
            # `sys.exit` or `pytest.fail`: the trial stays ungraded, or fails, and others go on
            return _Raised(error)

    def _meant(self, error: BaseException, looked: Looked) -> GradeOutcome:
        found = list(leaves(error))
        if fatal_in(error) is None and all(map(_fails, found)):
            reason = "\n".join(str(one) or type(one).__name__ for one in found)
            evidence = looked.level or Evidence.CLAIMED
            return Score(self.name, passed=False, evidence=evidence, reason=reason)
        if isinstance(error, ServerUnavailableError):  # of what it is imported by
            return GraderFailure(self.name, f"its function {error.reason}")
        return GraderFailure(self.name, f"raised {named(error)}")


def _fails(error: BaseException) -> bool:
    """Tell whether an error says that the trial fails: an `assert`, or `pytest.fail`."""
    pytest = sys.modules.get("pytest")  # a function that calls it has imported it
    fail = getattr(getattr(pytest, "fail", None), "Exception", AssertionError)
    return isinstance(error, AssertionError | fail)


@dataclass(frozen=True, slots=True)
class _Raised:
    error: BaseException


def _loaded(name: str, folder: Path) -> JudgeFunction:
    return _callable(load_object("judge", name, folder), name)


def _callable(found: object, name: str = "") -> JudgeFunction:
    judge = getattr(found, "judge", found)
    if isinstance(found, type) or not callable(judge):
        kind = f"the class {found.__name__}" if isinstance(found, type) else type(found).__name__
        what = name or "the judge"
        msg = f"{what} is {kind}; valid: a function, or an object with `judge(trial)`"
        raise NoFunctionError(msg)
    return judge


def _threshold(stated: float | None) -> float:
    return FULL_SCORE if stated is None else stated
