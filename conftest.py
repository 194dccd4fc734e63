"""Shared set-up of the project's own tests."""

pytest_plugins = ["pytester", "tests.writes_arrived"]
