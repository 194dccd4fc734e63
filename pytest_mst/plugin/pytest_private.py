"""Every name that pytest and xdist keep private and this plugin needs, in one place.

Each is used by other plugins in the same way (pytest-rerunfailures re-runs `runtestprotocol`),
and a test of this module fails when one moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from _pytest.terminal import TerminalReporter

OWN_FIXTURES_MODULE = "pytest_mst.plugin.fixtures"


def run_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> list[pytest.TestReport]:
    """Run set-up, call and teardown of an item once, and return the reports unlogged."""
    reports: list[pytest.TestReport] = runtestprotocol(item, log=False, nextitem=nextitem)
    return reports


def tear_down_to(session: pytest.Session, nextitem: pytest.Item | None) -> None:
    """Tear down the nodes that the next item does not need."""
    session._setupstate.teardown_exact(nextitem)


def forget_last_run(item: pytest.Item) -> None:
    """Make an item ready to be run once more: no captured output, no instance of its class."""
    item._report_sections.clear()
    if isinstance(item, pytest.Function) and getattr(item, "_instance", None) is not None:
        del item._instance
        item._obj = None


def sections_of(item: pytest.Item) -> list[tuple[str, str, str]]:
    """Return the captured output of an item: phase, name and text of each."""
    return item._report_sections


def requested_fixtures(node: pytest.Item) -> frozenset[str]:
    """Return the names of the fixtures that a test asks for, directly or through others."""
    return frozenset(getattr(node, "fixturenames", ()))


def overriding_fixtures(node: pytest.Item, names: Iterable[str]) -> dict[str, Any]:
    """Return those of the plugin's fixtures that a test gets from elsewhere, by name.

    Also where the test itself asks for none of them.
    """
    info = getattr(node, "_fixtureinfo", None)
    found = {}
    for name in names:
        definitions = info.name2fixturedefs.get(name) if info is not None else None
        if not definitions:
            definitions = node.session._fixturemanager.getfixturedefs(name, node)
        if definitions and definitions[-1].func.__module__ != OWN_FIXTURES_MODULE:
            found[name] = definitions[-1]
    return found


def fixture_parameters(item: pytest.Item, *less: str) -> tuple[tuple[str, int], ...]:
    """Return which parameter each parametrized fixture of an item has: its name and index."""
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return ()
    of_function = set(less)
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0] if mark.args else mark.kwargs.get("argnames", ())
        if not mark.kwargs.get("indirect"):
            split = names.split(",") if isinstance(names, str) else names
            of_function.update(name.strip() for name in split)
    return tuple(sorted(one for one in callspec.indices.items() if one[0] not in of_function))


def end_workers(config: pytest.Config) -> None:
    """Have xdist's workers end, where there are some; what they write is then written.

    Pressing Ctrl-C meanwhile ends them at once.
    """
    manager = getattr(config.pluginmanager.get_plugin("dsession"), "nodemanager", None)
    if manager is None:
        return
    gateways = list(manager.group)
    try:
        manager.teardown_nodes()  # xdist does so itself a little later; twice does no harm
    except KeyboardInterrupt:
        for gateway in gateways:
            gateway._io.kill()


def has_function_fixtures(item: pytest.Item) -> bool:
    """Tell whether an item has a fixture that is to be made anew for each attempt."""
    info = getattr(item, "_fixtureinfo", None)
    if info is None:
        return False
    return any(
        definitions[-1].scope in ("function", "class")
        for name, definitions in info.name2fixturedefs.items()
        if definitions and name != "request"
    )


def fixture_value(item: pytest.Function, name: str) -> Any:
    """Return the value of a fixture, made now where the test has not asked for it."""
    return item._request.getfixturevalue(name)


def arguments_of(item: pytest.Function) -> dict[str, Any]:
    """Return what a test function is called with."""
    return {name: item.funcargs[name] for name in item._fixtureinfo.argnames}


def terminal_of(config: pytest.Config) -> TerminalReporter | None:
    """Return the terminal's reporter, where there is one."""
    plugin = config.pluginmanager.get_plugin("terminalreporter")
    return plugin if isinstance(plugin, TerminalReporter) else None


def outside_capture(config: pytest.Config) -> AbstractContextManager[None]:
    """Let what is written now reach the terminal, also while a test's output is captured."""
    manager = config.pluginmanager.get_plugin("capturemanager")
    disabled: AbstractContextManager[None] = (
        nullcontext() if manager is None else manager.global_and_fixture_disabled()
    )
    return disabled


def worker_queue(config: pytest.Config) -> Any | None:
    """Return xdist's loop of this worker, which knows the items that wait; `None` elsewhere."""
    for plugin in config.pluginmanager.get_plugins():
        if hasattr(plugin, "torun") and hasattr(plugin, "nextitem_index"):
            return plugin
    return None


def queued_items(worker: Any, items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the items that a worker has been given, from the one under way on."""
    with worker.torun.lock() as queue:
        indexes = [worker.item_index, worker.nextitem_index, *queue]
    for index in indexes:
        if isinstance(index, int):
            yield items[index]


def fixture_functions(item: pytest.Item, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the functions of fixtures and of those that they ask for, by name.

    Those of this plugin and of pytest itself are left out.
    """
    info = getattr(item, "_fixtureinfo", None)
    known = dict(info.name2fixturedefs) if info is not None else {}
    found: dict[str, Any] = {}
    pending = dict(definitions)
    while pending:
        name, definition = pending.popitem()
        found[name] = definition.func
        for asked in definition.argnames:
            there = known.get(asked) or item.session._fixturemanager.getfixturedefs(asked, item)
            if asked in found or not there:
                continue
            if there[-1].func.__module__.partition(".")[0] not in ("_pytest", "pytest_mst"):
                pending[asked] = there[-1]
    return found


def parameters_of(item: pytest.Item) -> dict[str, Any]:
    """Return the values that an item is parametrized with, by name."""
    callspec = getattr(item, "callspec", None)
    return dict(callspec.params) if callspec is not None else {}
