"""Deletes branches of a git repository, which mcp-server-git has no tool for.

Usage: python branches.py REPOSITORY. For cleaning up only: no variant gives it to its client.
"""

from __future__ import annotations

import subprocess
import sys

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("branches", version="1.0.0")


def git(*arguments: str) -> str:
    """Run git in the repository and return what it prints."""
    done = subprocess.run(
        ["git", "-C", sys.argv[1], *arguments], check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


@server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True))
def delete_branches(ending: str) -> str:
    """Delete the branches whose names end like this."""
    names = git("for-each-ref", "--format=%(refname:short)", f"refs/heads/*{ending}").split()
    if names:
        git("branch", "--quiet", "-D", *names)
    return f"deleted: {', '.join(names) or 'none'}"


if __name__ == "__main__":
    server.run()
