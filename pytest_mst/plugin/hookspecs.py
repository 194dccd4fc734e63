"""The hooks that a conftest or another plugin may implement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_mst.domain.failure_class import FailureClass, FailurePhase
    from pytest_mst.plugin.registration import Registrar


@pytest.hookspec(historic=True)
def pytest_mst_register(registrar: Registrar) -> None:
    """Add clients and judges of your own, under names that evals then know.

    Called once in each process that has evals, with `--mst` only, before any eval file is read. An
    eval file can name what a plugin registers, or a conftest that pytest loads when it starts:
    that of its root folder, or of a folder or file it is given. A conftest that is met later can
    register what test functions use.

    Args:
        registrar: `registrar.client(name, client)` adds a client: an async function that takes a
            `pytest_mst.ClientRequest` and returns the answer, or an object with `name` and
            `async run(request)`. `registrar.judge(name, judge)` adds a judge: a function that
            takes a finished trial, async or not. A name that is taken is an error.

    """


@pytest.hookspec(firstresult=True)
def pytest_mst_classify_failure(
    phase: FailurePhase, text: str, exception: BaseException | None
) -> FailureClass | Mapping[str, object] | None:
    """Say what an infrastructure failure means, where you know the surroundings better.

    Asked about infrastructure failures only, before they are stored. An answer can change whether
    a retry can help, how far the failure reaches and what it is called; it can make no trial of a
    failure, and is never asked about a trial. The first answer that is not `None` counts. An
    answer that is wrong, or an error in the hook, leaves the failure as it was, and its reason
    says so. Attempts that were cut short because the run was stopped, or lost with their process,
    are not asked about.

    It is called in the thread of the background event loop, where attempts run: it must not
    block, and must not use pytest's own objects that belong to the main thread.

    Args:
        phase: where the attempt broke: `setup` (fixtures and servers, before the client was given
            anything), `client` (while it acted), `body` (in a test body that runs the client
            itself) or `collection` (what there was could not be stored).
        text: what is known in words: the reason, and after it, from a new line on, the
            diagnostics of the client or the server.
        exception: what was raised; `None` where nothing was, as at a deadline.

    Returns:
        A `pytest_mst.FailureClass`, or a dict with some of its fields: `retryable` (bool), `scope`
        (`trial`, `case`, `variant` or `run`; wider than `trial`, what has not begun there is not
        begun) and `reason` (text). What is left out or `None` stays as it is. The scope of a
        fatal error can be widened and not narrowed.

    """
