"""A model provider on loopback, for tests: Anthropic, OpenAI (two APIs) and Gemini, with faults.

It stands in for what cannot be reached where tests run, and bills nobody.
"""

from tests.model_provider.asked import Asked
from tests.model_provider.server import ModelProvider
from tests.model_provider.steps import (
    Answer,
    Fail,
    Hang,
    OutputLimit,
    Raw,
    Refuse,
    Step,
    Structured,
    Tool,
    context_overflow,
    cut,
    say,
    use,
)

__all__ = (
    "Answer",
    "Asked",
    "Fail",
    "Hang",
    "ModelProvider",
    "OutputLimit",
    "Raw",
    "Refuse",
    "Step",
    "Structured",
    "Tool",
    "context_overflow",
    "cut",
    "say",
    "use",
)
