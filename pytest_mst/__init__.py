"""Evals of MCP servers, and of the agents that use them, as pytest items."""
