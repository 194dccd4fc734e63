"""The pytest plugin: the only place that knows pytest, pluggy and xdist.

This module is loaded in every pytest run of an environment, so it imports next to nothing.
Everything that evals need is in `plugin.active` and is imported with `--mst` only.
"""

from __future__ import annotations

import pytest

from pytest_mst.plugin import fixtures, hookspecs
from pytest_mst.plugin.options import add_options, check_together, is_enabled

MARKERS = (
    "mst(input=, config=, trials=, pass_threshold=, tags=, timeout=, variants=): "
    "an eval case, run with --mst; `timeout` in milliseconds",
    "writes(server=, tool=, arguments=, required=, exclusive=, order=): "
    "a write that an eval case expects; may be repeated; bare: writes are recorded and must agree",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Make our own hooks known, with `--mst` or without: a conftest may implement them."""
    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """With `--mst`, refuse ways to run tests that evals cannot be run in."""
    check_together(config)
    if is_enabled(config):
        from pytest_mst.plugin.distribution import check_distribution

        check_distribution(config)


def pytest_configure(config: pytest.Config) -> None:
    """Make markers and fixtures known; with `--mst`, turn evals on."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    config.pluginmanager.register(fixtures, "mst-fixtures")
    if is_enabled(config):
        from pytest_mst.plugin import active

        config.pluginmanager.register(active, "mst-active")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests that are eval cases, where evals are off."""
    if is_enabled(config):
        return
    evals = [item for item in items if item.get_closest_marker("mst") is not None]
    if evals:
        config.hook.pytest_deselected(items=evals)
        items[:] = [item for item in items if item.get_closest_marker("mst") is None]
