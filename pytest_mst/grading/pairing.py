"""Pairing two lists one to one, as many as can be paired. Numbers are 0-based positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Pairs = dict[int, int]
"""Right positions by left position; no right position stands twice."""


def most_pairs(fits: Sequence[Sequence[int]]) -> Pairs:
    """Pair as many as possible, each at most once, whatever stands where.

    Augmenting paths never undo that a left position is paired. So among the largest pairings
    this is one that pairs the earlier left positions before the later: callers put first what
    must be paired.

    Args:
        fits: for each left position the right positions it may be paired with.

    """
    owners: dict[int, int] = {}
    for start in range(len(fits)):
        _augment(fits, owners, start)
    return {left: right for right, left in sorted(owners.items(), key=lambda pair: pair[1])}


def _augment(fits: Sequence[Sequence[int]], owners: dict[int, int], start: int) -> None:
    """Find a right position for `start`, moving others on where that makes room."""
    reached_from: dict[int, int] = {}
    queue = [start]
    for left in queue:
        for right in fits[left]:
            if right in reached_from:
                continue
            reached_from[right] = left
            if right not in owners:
                _take(owners, reached_from, right)
                return
            queue.append(owners[right])


def _take(owners: dict[int, int], reached_from: dict[int, int], right: int) -> None:
    """Give each right position of the path found to the left position it was reached from."""
    previous = {left: taken for taken, left in owners.items()}
    step: int | None = right
    while step is not None:
        left = reached_from[step]
        owners[step] = left
        step = previous.get(left)


def most_pairs_in_order(
    fits: Callable[[int, int], bool], left_weights: Sequence[int], right_count: int
) -> Pairs:
    """Pair in sequence: a later left position only with a later right position.

    Args:
        fits: whether a left and a right position may be paired.
        left_weights: for each left position how much its pairing counts, above 0; the sum is as
            large as can be.
        right_count: how many right positions there are.

    """
    lefts, rights = len(left_weights), right_count
    best = [[0] * (rights + 1) for _ in range(lefts + 1)]
    fit = [[fits(left, right) for right in range(rights)] for left in range(lefts)]
    for left in reversed(range(lefts)):
        for right in reversed(range(rights)):
            skipped = max(best[left + 1][right], best[left][right + 1])
            paired = left_weights[left] + best[left + 1][right + 1] if fit[left][right] else 0
            best[left][right] = max(skipped, paired)
    pairs: Pairs = {}
    left = right = 0
    while left < lefts and right < rights:
        paired = left_weights[left] + best[left + 1][right + 1]
        if fit[left][right] and paired == best[left][right]:
            pairs[left] = right
            left, right = left + 1, right + 1
        elif best[left + 1][right] == best[left][right]:
            left += 1
        else:
            right += 1
    return pairs
