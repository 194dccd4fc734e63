"""Makes the agent that is written in this folder a client that evals can name."""

from __future__ import annotations

from typing import Any

from pydantic_ai_agent import clerk


def pytest_mst_register(registrar: Any) -> None:
    """Register the agent."""
    registrar.client("pydantic-ai-clerk", clerk)
