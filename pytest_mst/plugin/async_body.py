"""Running the body of a Python case, plain or async, and finding what nobody awaited."""

from __future__ import annotations

import functools
import inspect
import warnings

import anyio
import pytest

from pytest_mst.plugin.body import NeverAwaited
from pytest_mst.plugin.keys import CASE
from pytest_mst.plugin.pytest_private import arguments_of, fixture_value


def call_body(item: pytest.Function) -> None:
    """Call a test function; run what it returns where that is to be awaited.

    Raises:
        NeverAwaited: the body left a coroutine behind, so that something it asked for never ran.

    """
    case = item.stash[CASE]
    if case.run_by == "engine" and "trial" not in case.fixtures:
        fixture_value(item, "trial")  # its markers alone grade the case
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        function, arguments = item.obj, arguments_of(item)
        if inspect.iscoroutinefunction(function):
            anyio.run(functools.partial(function, **arguments))
        elif inspect.isawaitable(result := function(**arguments)):
            msg = f"the body returned {type(result).__name__}, never awaited: write `async def`"
            if inspect.iscoroutine(result):
                result.close()
            raise NeverAwaited(msg)
    # what warns of a coroutine that nobody awaited names it as its source
    unawaited = [one for one in caught if inspect.iscoroutine(one.source)]
    for one in caught:
        if one not in unawaited:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    if unawaited:
        raise NeverAwaited(str(unawaited[0].message))
