"""How deep values may be nested in a file: deeper than any eval needs, no deeper than is safe."""

from __future__ import annotations

MAX_DEPTH = 100


def too_deep() -> str:
    """Say what is wrong with a file that goes deeper."""
    return f"values are nested more than {MAX_DEPTH} levels deep"
