"""Evals of MCP servers, and of the agents that use them, as pytest items.

The names below are imported when they are first used: a pytest plugin is loaded in every pytest
run of its environment, and most of those run no eval.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_mst.attempt.trial_view import FinishedTrial, WriteRecord
    from pytest_mst.clients.client import Client, ClientRequest
    from pytest_mst.clients.scripted import ScriptedClient
    from pytest_mst.domain.ending import (
        CaseFatalError,
        InfrastructureError,
        RunFatalError,
        Trial,
        VariantFatalError,
    )
    from pytest_mst.domain.eval_config import EvalConfig
    from pytest_mst.domain.failure_class import FailureClass
    from pytest_mst.domain.retry import RetryHint, RetryKind
    from pytest_mst.domain.score import Score, Unknown
    from pytest_mst.domain.tool_call import ServerGoneError, ToolCallError
    from pytest_mst.domain.trace import TraceEvent
    from pytest_mst.providers.model_errors import model_errors

__all__ = (
    "CaseFatalError",
    "Client",
    "ClientRequest",
    "EvalConfig",
    "FailureClass",
    "FinishedTrial",
    "InfrastructureError",
    "RetryHint",
    "RetryKind",
    "RunFatalError",
    "Score",
    "ScriptedClient",
    "ServerGoneError",
    "ToolCallError",
    "TraceEvent",
    "Trial",
    "Unknown",
    "VariantFatalError",
    "WriteRecord",
    "model_errors",
)

_HOMES = {
    "CaseFatalError": "pytest_mst.domain.ending",
    "Client": "pytest_mst.clients.client",
    "ClientRequest": "pytest_mst.clients.client",
    "EvalConfig": "pytest_mst.domain.eval_config",
    "FailureClass": "pytest_mst.domain.failure_class",
    "FinishedTrial": "pytest_mst.attempt.trial_view",
    "InfrastructureError": "pytest_mst.domain.ending",
    "RetryHint": "pytest_mst.domain.retry",
    "RetryKind": "pytest_mst.domain.retry",
    "RunFatalError": "pytest_mst.domain.ending",
    "Score": "pytest_mst.domain.score",
    "ScriptedClient": "pytest_mst.clients.scripted",
    "ServerGoneError": "pytest_mst.domain.tool_call",
    "ToolCallError": "pytest_mst.domain.tool_call",
    "TraceEvent": "pytest_mst.domain.trace",
    "Trial": "pytest_mst.domain.ending",
    "Unknown": "pytest_mst.domain.score",
    "VariantFatalError": "pytest_mst.domain.ending",
    "WriteRecord": "pytest_mst.attempt.trial_view",
    "model_errors": "pytest_mst.providers.model_errors",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(home), name)
