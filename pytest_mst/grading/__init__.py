"""Graders: pure functions from a finished trial to scores."""
