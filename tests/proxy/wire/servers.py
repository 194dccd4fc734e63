"""The servers that are compared, how each is started, and what it is asked."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.proxy.setting import SERVERS
from tests.proxy.wire.conversation import Ask

UNICODE = '日本語 ✓ 🎉 e\u0301 \u2028 \u0000 \\ " </'
BIG = 2**63 + 1
DATED = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (
        ("NAME", "Ada"),
        ("EMAIL", "ada@example.org"),
        ("DATE", "2026-01-05T10:00:00Z"),
    )
}


@dataclass(frozen=True)
class RealServer:
    """A server, made anew in a folder for each conversation so that all find the same."""

    name: str
    program: str
    """A module of Python to run, or the name of a program from npm."""
    asked: Callable[[Path], Sequence[Ask]]
    prepare: Callable[[Path], None]
    args: tuple[str, ...] = ()
    """`{folder}` stands for its folder."""
    env: Mapping[str, str] = field(default_factory=dict)
    from_npm: bool = False
    is_modern: bool = False
    is_compact: bool = True
    """Whether it writes JSON without spaces, as the SDKs do."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """What else its definition in an eval config says."""
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    answers: Mapping[str, Any] = field(default_factory=dict)
    """What the client answers to what the server asks."""

    def filled(self, text: str, folder: Path) -> str:
        return text.replace("{folder}", str(folder))


def calls(tools: Mapping[str, Mapping[str, Any]]) -> list[Ask]:
    """Call tools with and without their arguments."""
    return [
        one
        for tool, given in tools.items()
        for one in in_every_way(tool, given)
        if one.what.endswith(("as it should be", "no arguments", "of a wrong type"))
    ]


def in_every_way(tool: str, given: Mapping[str, Any]) -> list[Ask]:
    """Call one tool in all the ways that are told apart on the wire."""

    def call(what: str, **params: Any) -> Ask:
        return Ask(f"{tool}: {what}", "tools/call", {"name": tool, **params})

    wrong = {name: {"not": ["of", "its", "type"]} for name in given}
    return [
        call("as it should be", arguments=given),
        call("no arguments"),
        call("arguments null", arguments=None),
        call("arguments {}", arguments={}),
        call("arguments of a wrong type", arguments={**given, **wrong}),
        call("arguments a list", arguments=[1]),
        call("arguments a text", arguments=json.dumps(given)),
        call("unknown arguments", arguments={**given, "x": [1, None, {"a": 1.0}], "big": BIG}),
        call("unicode", arguments={**given, "x": UNICODE}),
        call("unknown parameters", arguments=given, x={"kept": None}),
        call("unknown _meta", arguments=given, _meta={"org.example/x": {"a": None}, "n": BIG}),
    ]


def of_every_server() -> list[Ask]:
    """Ask what has nothing to do with one server's tools."""
    return [
        Ask("ping", "ping"),
        Ask("tools", "tools/list", {}),
        Ask("tools, no parameters", "tools/list"),
        Ask("tools, unknown cursor", "tools/list", {"cursor": "nonsense"}),
        Ask("tools, unknown parameters", "tools/list", {"x": None, "_meta": {"y": BIG}}),
        Ask("resources", "resources/list", {}),
        Ask("templates", "resources/templates/list", {}),
        Ask("unknown resource", "resources/read", {"uri": "nobody://has/this"}),
        Ask("resource without uri", "resources/read", {}),
        Ask("prompts", "prompts/list", {}),
        Ask("unknown prompt", "prompts/get", {"name": "nobody has this"}),
        Ask(
            "completion",
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "y", "value": "z"}},
        ),
        Ask("log level", "logging/setLevel", {"level": "warning"}),
        Ask("wrong log level", "logging/setLevel", {"level": "loud"}),
        Ask("subscribe", "resources/subscribe", {"uri": "nobody://has/this"}),
        Ask("unsubscribe", "resources/unsubscribe", {"uri": "nobody://has/this"}),
        Ask("unknown method", "nonsense/method", {"a": 1}),
        Ask("unknown tool", "tools/call", {"name": "nobody lists this", "arguments": {}}),
        Ask("call without a name", "tools/call", {"arguments": {}}),
        Ask("call of a number", "tools/call", {"name": 5, "arguments": {}}),
        Ask("call without parameters", "tools/call"),
    ]


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, env={**DATED}, check=True, capture_output=True)


def _make_repository(folder: Path) -> None:
    repository = folder / "repository"
    shutil.rmtree(repository, ignore_errors=True)
    repository.mkdir()
    _git(repository, "init", "-q", "-b", "main")
    (repository / "a.txt").write_text(f"one\n{UNICODE}\n".replace("\0", ""))
    _git(repository, "add", "a.txt")
    _git(repository, "commit", "-q", "-m", f"first ✓ {'x' * 200}")
    (repository / "a.txt").write_text("two\n")
    _git(repository, "add", "a.txt")
    (repository / "a.txt").write_text("three\n")
    (repository / "b.txt").write_text("new\n")


def _asked_of_git(folder: Path) -> list[Ask]:
    repo = {"repo_path": str(folder / "repository")}
    reads: dict[str, dict[str, Any]] = {
        "git_diff_unstaged": {"context_lines": 1},
        "git_diff_staged": {},
        "git_diff": {"target": "HEAD"},
        "git_log": {"max_count": 2},
        "git_show": {"revision": "HEAD"},
        "git_branch": {"branch_type": "local"},
    }
    writes: dict[str, dict[str, Any]] = {
        "git_add": {"files": ["b.txt"]},
        "git_commit": {"message": "second ✓"},
        "git_create_branch": {"branch_name": "side"},
        "git_checkout": {"branch_name": "side"},
        "git_reset": {},
    }
    nowhere = {"repo_path": str(folder / "nowhere")}
    return [
        *of_every_server(),
        *in_every_way("git_status", repo),
        *calls({tool: repo | given for tool, given in reads.items()}),
        Ask("no repository", "tools/call", {"name": "git_log", "arguments": nowhere}),
        *calls({tool: repo | given for tool, given in writes.items()}),
    ]


def _asked_of_time(_folder: Path) -> list[Ask]:
    zones = {"source_timezone": "UTC", "time": "10:00", "target_timezone": "Asia/Kolkata"}
    return [
        *of_every_server(),
        *in_every_way("get_current_time", {"timezone": "Europe/Warsaw"}),
        *calls({"convert_time": zones}),
    ]


def _nothing(_folder: Path) -> None:
    """Need nothing in the folder."""


def _asked_of_everything(_folder: Path) -> list[Ask]:
    text = "demo://resource/dynamic/text/1"
    given: dict[str, dict[str, Any]] = {
        "get-annotated-message": {"messageType": "error", "includeImage": True},
        "get-env": {},
        "get-resource-links": {"count": 2},
        "get-resource-reference": {"resourceType": "Blob", "resourceId": 1},
        "get-structured-content": {"location": "Chicago"},
        "get-sum": {"a": 2**53 + 1, "b": 0.1},
        "get-tiny-image": {},
    }
    asked = [*in_every_way("echo", {"message": UNICODE}), *calls(given)]
    progress = {
        "name": "trigger-long-running-operation",
        "arguments": {"duration": 0.2, "steps": 4},
        "_meta": {"progressToken": "p-1"},
    }
    asked.append(Ask("progress", "tools/call", progress))
    cities = {"ref": {"type": "ref/prompt", "name": "completable-prompt"}}
    asked += [
        Ask("a resource", "resources/read", {"uri": text}),
        Ask("a document", "resources/read", {"uri": DOCUMENT}),
        Ask("a prompt", "prompts/get", {"name": "simple-prompt"}),
        Ask(
            "a prompt with arguments",
            "prompts/get",
            {"name": "args-prompt", "arguments": {"city": UNICODE}},
        ),
        Ask("a prompt without its arguments", "prompts/get", {"name": "args-prompt"}),
        Ask("a resource prompt", "prompts/get", {"name": "resource-prompt", "arguments": PROMPT}),
        Ask(
            "a completion",
            "completion/complete",
            {**cities, "argument": {"name": "department", "value": "S"}},
        ),
        Ask("subscribe to a resource", "resources/subscribe", {"uri": text}),
        Ask("unsubscribe from a resource", "resources/unsubscribe", {"uri": text}),
    ]
    asked.append(Ask("log all", "logging/setLevel", {"level": "debug"}))
    for tool in ("toggle-simulated-logging", "toggle-subscriber-updates"):
        call = Ask(f"{tool}, no arguments", "tools/call", {"name": tool})
        again = Ask(f"{tool}, again", "tools/call", {"name": tool})
        asked += [call, again]
    data = {"name": "x.gz", "data": "data:text/plain,x"}
    return [*of_every_server(), *asked, *calls({"gzip-file-as-resource": data})]


DOCUMENT = "demo://resource/static/document/features.md"
PROMPT = {"resourceType": "Text", "resourceId": "2"}
ASKED_BACK = {
    "roots/list": {"roots": [{"uri": "file:///nowhere", "name": "✓"}], "x": {"kept": None}},
    "sampling/createMessage": {
        "role": "assistant",
        "content": {"type": "text", "text": UNICODE},
        "model": "none",
        "stopReason": "endTurn",
    },
    "elicitation/create": {"action": "decline"},
}
ASKS_BACK = {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}}


def _asked_of_everything_that_asks_back(_folder: Path) -> list[Ask]:
    return [
        Ask("tools", "tools/list", {}),
        Ask("roots", "tools/call", {"name": "get-roots-list", "arguments": {}}),
        *calls({"trigger-sampling-request": {"prompt": UNICODE, "maxTokens": 9}}),
        Ask("elicitation", "tools/call", {"name": "trigger-elicitation-request", "arguments": {}}),
        Ask("roots again", "tools/call", {"name": "get-roots-list", "arguments": {}}),
    ]


def _make_files(folder: Path) -> None:
    files = folder / "files"
    shutil.rmtree(files, ignore_errors=True)
    (files / "sub").mkdir(parents=True)
    (files / "a.txt").write_text(f"one\n{UNICODE}\nthree\n")
    (files / "sub" / "b.bin").write_bytes(bytes(range(256)))


def _asked_of_filesystem(folder: Path) -> list[Ask]:
    root, text = str(folder / "files"), str(folder / "files" / "a.txt")
    given: dict[str, dict[str, Any]] = {
        "read_text_file": {"path": text, "head": 2},
        "read_media_file": {"path": str(folder / "files" / "sub" / "b.bin")},
        "read_multiple_files": {"paths": [text, "/nowhere"]},
        "list_directory": {"path": root},
        "list_directory_with_sizes": {"path": root, "sortBy": "size"},
        "directory_tree": {"path": root},
        "search_files": {"path": root, "pattern": "**/*.txt"},
        "get_file_info": {"path": text},
        "list_allowed_directories": {},
    }
    writes: dict[str, dict[str, Any]] = {
        "write_file": {"path": text, "content": "new"},
        "edit_file": {"path": text, "edits": [{"oldText": "new", "newText": "newer"}]},
        "create_directory": {"path": f"{root}/made"},
        "move_file": {"source": text, "destination": f"{root}/moved.txt"},
    }
    outside = {"name": "read_text_file", "arguments": {"path": "/etc/hostname"}}
    return [
        *of_every_server(),
        *in_every_way("read_file", {"path": text}),
        *calls(given),
        Ask("outside", "tools/call", outside),
        *calls(writes),
    ]


def _asked_of_filesystem_that_asks_back(folder: Path) -> list[Ask]:
    text = {"path": str(folder / "files" / "a.txt")}
    allowed = {"name": "list_allowed_directories", "arguments": {}}
    return [
        Ask("tools", "tools/list", {}),
        Ask("allowed", "tools/call", allowed, until='files"'),
        Ask("a file", "tools/call", {"name": "read_text_file", "arguments": text}),
    ]


def _asked_of_memory(_folder: Path) -> list[Ask]:
    entity = {"name": "Ada", "entityType": "person", "observations": ["writes ✓"]}
    relation = {"from": "Ada", "to": "Ada", "relationType": "knows"}
    seen = {"entityName": "Ada", "contents": ["reads"]}
    gone = {"entityName": "Ada", "observations": ["reads"]}
    reads: dict[str, dict[str, Any]] = {
        "read_graph": {},
        "open_nodes": {"names": ["Grace"]},
    }
    writes: dict[str, dict[str, Any]] = {
        "create_entities": {"entities": [entity]},
        "create_relations": {"relations": [relation]},
        "add_observations": {"observations": [seen]},
        "delete_observations": {"deletions": [gone]},
        "delete_relations": {"relations": [relation]},
        "delete_entities": {"entityNames": ["Ada"]},
    }
    graph = Ask("the graph", "resources/read", {"uri": "memory://knowledge-graph"})
    return [
        *of_every_server(),
        graph,
        *in_every_way("search_nodes", {"query": "Grace"}),
        *calls(reads),
        *calls(writes),
    ]


def _make_graph(folder: Path) -> None:
    line = {"type": "entity", "name": "Grace", "entityType": "person", "observations": [UNICODE]}
    (folder / "graph.jsonl").write_text(json.dumps(line) + "\n")


def _asked_of_wild(_folder: Path) -> list[Ask]:
    plain = ("surrogate", "big_int", "fail", "refuse")
    pages = [Ask(f"page at {n}", "tools/list", {"cursor": n}) for n in ("8", "16")]
    progress = {"name": "progress", "arguments": {}, "_meta": {"progressToken": 7, "x": None}}
    return [
        Ask("tools", "tools/list", {}),
        *pages,
        *in_every_way("read_item", {"id": "a", "n": 1.0}),
        *[Ask(f"{name}, once", "tools/call", {"name": name}) for name in plain],
        Ask("progress", "tools/call", progress),
    ]


ALL = [
    RealServer(
        "git",
        "mcp_server_git",
        _asked_of_git,
        _make_repository,
        args=("--repository", "{folder}/repository"),
        env=DATED,
        is_modern=True,
    ),
    RealServer("time", "mcp_server_time", _asked_of_time, _nothing, is_modern=True),
    RealServer(
        "everything", "mcp-server-everything", _asked_of_everything, _nothing, from_npm=True
    ),
    RealServer(
        "everything-asks-back",
        "mcp-server-everything",
        _asked_of_everything_that_asks_back,
        _nothing,
        from_npm=True,
        config={"readOnlyTools": ["trigger-sampling-request", "trigger-elicitation-request"]},
        capabilities=ASKS_BACK,
        answers=ASKED_BACK,
    ),
    RealServer(
        "filesystem",
        "mcp-server-filesystem",
        _asked_of_filesystem,
        _make_files,
        args=("{folder}/files",),
        from_npm=True,
    ),
    RealServer(
        "filesystem-asks-back",
        "mcp-server-filesystem",
        _asked_of_filesystem_that_asks_back,
        _make_files,
        args=("{folder}/files/sub",),
        from_npm=True,
        capabilities={"roots": {"listChanged": True}},
        answers={"roots/list": {"roots": [{"uri": "file://{folder}/files", "name": "files"}]}},
    ),
    RealServer(
        "memory",
        "mcp-server-memory",
        _asked_of_memory,
        _make_graph,
        env={"MEMORY_FILE_PATH": "{folder}/graph.jsonl"},
        from_npm=True,
    ),
    RealServer(
        "wild",
        str(SERVERS / "wild.py"),
        _asked_of_wild,
        _nothing,
        args=("--page", "8"),
        is_modern=True,
        is_compact=False,
    ),
]
