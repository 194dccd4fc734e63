"""The way out of a name that is not there: the nearest names there are."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from pytest_mst.eval_files.quoted import quoted

_MANY = 12


def nearest(given: str, valid: Iterable[str]) -> list[str]:
    """Return up to two names that may have been meant, the likeliest first.

    Case, `_` and `-` do not count, so that `pass_threshold` finds `passThreshold`.
    """
    by_plain = {_plain(name): name for name in valid}
    found = difflib.get_close_matches(_plain(given), by_plain, n=2, cutoff=0.7)
    return [by_plain[name] for name in found]


def suggest(given: str, valid: Iterable[str], what: str) -> str:
    """Write what to use instead of a name that is not there.

    Args:
        given: the name that was written.
        valid: the names there are.
        what: what they are called together, such as `labels`.

    """
    names = list(dict.fromkeys(valid))
    near = nearest(given, names)
    listed = ", ".join(names) if names else "none"
    if not near:
        return f"{what}: {listed}"
    meant = f"did you mean {' or '.join(map(quoted, near))}?"
    return meant if len(names) > _MANY else f"{meant} {what}: {listed}"


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
