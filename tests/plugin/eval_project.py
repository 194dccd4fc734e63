"""A folder with evals, as a user has it, and pytest run in it as a process of its own."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

DESK = Path(__file__).parent / "servers" / "desk.py"
LISTED = Path(__file__).parent / "servers" / "listed.py"
INI = """
[pytest]
addopts = --strict-markers --strict-config
filterwarnings = error
"""
ENDED_WITHIN_S = 60.0

Json = dict[str, Any]


def desk(*words: str, **more: Any) -> Json:
    """Return the definition of the fast server; words make it misbehave."""
    return {
        "transport": "stdio",
        "command": "python",
        "args": ["-IS", str(DESK), *words],
        "env": {name: f"${{{name}}}" for name in ("DESK_LOG", "DESK_BELL", "DESK_WORDS")},
        **more,
    }


def tool(name: str, hint: bool | None = True, **properties: Any) -> Json:
    """Return a tool as a server lists it, hinted a read unless said otherwise."""
    there: Json = {"name": name, "inputSchema": {"type": "object", "properties": properties}}
    return there if hint is None else there | {"annotations": {"readOnlyHint": hint}}


def listed(*tools: Json, later: Sequence[Json] | None = None, **more: Any) -> Json:
    """Return the definition of a server that lists these tools, and others from then on."""
    lists = [json.dumps(one) for one in (tools, later) if one is not None]
    return {
        "transport": "stdio",
        "command": "python",
        "args": ["-IS", str(LISTED), *lists],
        "env": {"DESK_LOG": "${DESK_LOG}"},
        **more,
    }


def call(tool: str, /, server: str = "desk", **arguments: Any) -> Json:
    """Return the step that calls a tool."""
    return {"call": {"server": server, "tool": tool, "arguments": arguments}}


def hidden(tool: str, /, **arguments: Any) -> Json:
    """Return the step that calls a tool and keeps it out of the trace."""
    return {"hidden": {"server": "desk", "tool": tool, "arguments": arguments}}


def claim(tool: str, /, **arguments: Any) -> Json:
    """Return the step that says a tool was called."""
    return {"claim": {"server": "desk", "tool": tool, "arguments": arguments}}


def answer(text: str) -> Json:
    """Return the step that answers."""
    return {"answer": text}


def write(tool: str, **more: Any) -> Json:
    """Return one expected write."""
    return {"server": "desk", "tool": tool, **more}


def case(case_id: str, *steps: Json, options: Mapping[str, Any] = {}, **more: Any) -> Json:
    """Return a case whose client does these steps; its answer is to contain `ok`.

    Given `assertions` or `expected`, it is graded by those.
    """
    script = {"script": list(steps), **options}
    graded = {} if {"assertions", "expected"} & set(more) else {"assertions": says("ok")}
    return {"id": case_id, "input": f"Do {case_id}", "clientOptions": script, **graded, **more}


def says(text: str) -> Json:
    """Return the assertions that an answer contains a text."""
    return {"containsText": text}


@dataclass(frozen=True)
class StoredRun:
    """A run's folder, read; reading it checks that every file is whole and the ledger adds up."""

    folder: Path
    files: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        files: dict[str, Any] = {}
        for path in sorted(self.folder.rglob("*")):
            name = str(path.relative_to(self.folder))
            if path.suffix == ".json":
                files[name] = json.loads(path.read_text())
                assert files[name]["format"] == "mst.run/v1", name
            elif path.suffix == ".jsonl":
                files[name] = [json.loads(line) for line in path.read_text().splitlines()]
        object.__setattr__(self, "files", files)
        if "summary.json" in files:
            for figures in (self.summary, *self.summary["variants"]):
                ledger = dict(figures["ledger"])
                assert ledger.pop("planned") == sum(ledger.values())

    @property
    def plan(self) -> Json:
        return self.files["run.json"]  # type: ignore[no-any-return]  # JSON is Any until looked at

    @property
    def results(self) -> Json:
        return self.files["results.json"]  # type: ignore[no-any-return]  # as above

    @property
    def summary(self) -> Json:
        return self.files["summary.json"]  # type: ignore[no-any-return]  # as above

    @property
    def ledger(self) -> dict[str, int]:
        return self.summary["ledger"]  # type: ignore[no-any-return]  # as above

    @property
    def journal(self) -> list[Json]:
        return list(self.files.get("journal.jsonl", []))

    @property
    def verdicts(self) -> dict[str, str]:
        """Every verdict: by case; by case and variant where there are several variants."""
        several = len(self.plan["variants"]) > 1
        return {
            f"{one['id']}::{one['variant']}" if several else one["id"]: one["verdict"]
            for one in self.results["cases"]
        }

    def case(self, case_id: str, variant: str | None = None) -> Json:
        """Return one case of the results."""
        (found,) = (
            one
            for one in self.results["cases"]
            if one["id"] == case_id and variant in (None, one["variant"])
        )
        return found  # type: ignore[no-any-return]  # as above

    def trial(self, case_id: str, number: int = 0, variant: str | None = None) -> Json:
        """Return one trial of the results."""
        trial: Json = self.case(case_id, variant)["trials"][number]
        assert trial["trial"] == number
        return trial

    def ending(self, case_id: str, number: int = 0, variant: str | None = None) -> Json:
        """Return how an attempt ended; the results and its own file have to agree."""
        ending: Json = self.trial(case_id, number, variant)["ending"]
        assert self.trace_file(case_id, number, variant or "default")["ending"] == ending
        return ending

    def trace_file(self, case_id: str, number: int = 0, variant: str = "default") -> Json:
        """Return the file of one attempt."""
        return self.files[f"traces/{variant}/{case_id}/{number}.json"]  # type: ignore[no-any-return]  # as above

    def writes(self, case_id: str, number: int = 0, variant: str = "default") -> list[Json]:
        """Return the write record of one attempt."""
        return list(self.files.get(f"writes/{variant}/{case_id}/{number}.jsonl", []))


@dataclass(frozen=True)
class Session:
    """A pytest session that has ended."""

    code: int
    out: str
    err: str
    folders: tuple[Path, ...]
    """Of the runs it made."""

    @property
    def text(self) -> str:
        """Everything that was printed."""
        return self.out + self.err

    @property
    def run(self) -> StoredRun:
        """The only run."""
        assert len(self.folders) == 1, f"{self.folders}\n{self.text}"
        return StoredRun(self.folders[0])

    def run_of(self, eval_name: str) -> StoredRun:
        """Return the run of one eval."""
        (folder,) = (one for one in self.folders if one.parents[1].name.startswith(eval_name))
        return StoredRun(folder)

    @property
    def finish_with(self) -> list[str]:
        """The options of the command that it says finishes its run."""
        [line] = (one for one in self.out.splitlines() if one.startswith("finish it with: "))
        pytest, *options = shlex.split(line.removeprefix("finish it with: "))
        assert pytest == "pytest"
        return options

    @property
    def taken_up(self) -> list[tuple[int, ...]]:
        """Of each run that was taken up: how many attempts are kept, collected, graded, stuck."""
        found = re.findall(
            r"^kept (\d+), collect (\d+), grade (\d+), cannot be helped (\d+)",
            self.out,
            re.MULTILINE,
        )
        return [tuple(map(int, numbers)) for numbers in found]

    def count(self, text: str) -> int:
        """Tell how often a text was printed."""
        return self.text.count(text)

    def has(self, *lines: str) -> bool:
        """Tell whether these whole lines were printed, in this order, others between them."""
        there = iter(self.out.splitlines())
        return all(any(line == one.rstrip() for one in there) for line in lines)


CI_NAMES = ("CI", "BUILD_NUMBER")
"""By these pytest tells that it runs in CI, and then cuts no line of its summary short."""


class EvalProject:
    """A folder with evals, tests and a server."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.desk_log = root / "desk.jsonl"
        self.environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTEST_", "MST_")) and name not in CI_NAMES
        }
        self.environ |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "DESK_LOG": str(self.desk_log)}
        self.environ |= {"DESK_BELL": "", "DESK_WORDS": ""}
        self.write("pytest.ini", INI)

    def write(self, name: str, text: str) -> Path:
        """Write a file."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    def eval(self, *cases: Json, name: str = "desk", file: str | None = None, **more: Any) -> Path:
        """Write an eval config: the fast server, writes planned, unless said otherwise."""
        config: Json = {"name": name, "servers": {"desk": desk()}, "writes": "planned"}
        config |= {"client": "scripted", "cases": list(cases), **more}
        content = {key: value for key, value in config.items() if value is not None}
        return self.write(file or f"{name}.eval.json", json.dumps(content, indent=1))

    def test_file(self, source: str, name: str = "test_evals.py") -> Path:
        """Write a file with tests; the usual imports are made already."""
        head = "import os\nimport pytest\n\n"
        return self.write(name, head + textwrap.dedent(source))

    def command(self, *args: str, plugins: tuple[str, ...] = ("mst", "xdist")) -> list[str]:
        """Return the command that runs pytest here."""
        load = [word for plugin in plugins for word in ("-p", plugin)]
        return [sys.executable, "-m", "pytest", *load, *args]

    def run(
        self,
        *args: str,
        plugins: tuple[str, ...] = ("mst", "xdist"),
        within_s: float = ENDED_WITHIN_S,
    ) -> Session:
        """Run pytest to its end."""
        with self.started(*args, plugins=plugins) as running:
            return running.ended(within_s)

    @contextmanager
    def started(
        self, *args: str, plugins: tuple[str, ...] = ("mst", "xdist"), stdout: int | None = None
    ) -> Iterator[Running]:
        """Start pytest in a process group of its own, which is gone in the end."""
        outputs = self.root / "out.txt", self.root / "err.txt"
        before = set(self._folders())
        with outputs[0].open("wb") as out, outputs[1].open("wb") as err:
            process = subprocess.Popen(
                self.command(*args, plugins=plugins),
                cwd=self.root,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=out if stdout is None else stdout,
                stderr=err,
                start_new_session=True,
            )
        running = Running(self, process, before, outputs)
        try:
            yield running
        finally:
            running.kill()

    def show(self, locator: str) -> str:
        """Return what `show` prints of an attempt."""
        command = [sys.executable, "-m", "pytest_mst", "show", locator]
        done = subprocess.run(
            command, cwd=self.root, env=self.environ, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    def stored(self) -> dict[str, tuple[bytes, int]]:
        """Return every file of every run with its content and its time."""
        results = self.root / ".mst-results"
        return {
            str(path.relative_to(results)): (path.read_bytes(), path.stat().st_mtime_ns)
            for path in sorted(results.rglob("*"))
            if path.is_file()
        }

    def attempts(self, run: StoredRun) -> dict[str, tuple[bytes, int]]:
        """Return the files of a run's attempts, each with its content and its time."""
        return {
            name: (path.read_bytes(), path.stat().st_mtime_ns)
            for folder in ("traces", "writes", "scores")
            for path in sorted((run.folder / folder).rglob("*.json*"))
            for name in [str(path.relative_to(run.folder))]
        }

    def _folders(self) -> list[Path]:
        return sorted((self.root / ".mst-results").glob("*/runs/*"))

    @property
    def desk_lines(self) -> list[Json]:
        """What the servers wrote down, starts and calls."""
        if not self.desk_log.exists():
            return []
        return [json.loads(line) for line in self.desk_log.read_text().splitlines()]

    @property
    def desk_starts(self) -> int:
        """How many servers were started."""
        return sum("started" in line for line in self.desk_lines)

    @property
    def desk_calls(self) -> list[str]:
        """The tools whose calls reached a server, in order."""
        return [line["call"] for line in self.desk_lines if "call" in line]


@dataclass(frozen=True)
class Running:
    """A pytest session under way."""

    project: EvalProject
    process: subprocess.Popen[bytes]
    before: set[Path]
    outputs: tuple[Path, Path]

    def ended(self, within_s: float = ENDED_WITHIN_S) -> Session:
        """Wait for its end."""
        try:
            code = self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            out, err = (path.read_text(errors="replace") for path in self.outputs)
            msg = f"not ended after {within_s} s:\n{out}\n{err}"
            raise AssertionError(msg) from None
        out, err = (path.read_text(errors="replace") for path in self.outputs)
        folders = [one for one in self.project._folders() if one not in self.before]
        return Session(code, out, err, tuple(folders))

    def interrupt(self) -> None:
        """Press Ctrl-C: every process of the group gets the signal."""
        os.killpg(self.process.pid, signal.SIGINT)

    def kill(self) -> None:
        """End every process of the group at once."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self.process.wait(10)


class Bell:
    """Hears the calls of `stall`, and tells when the servers that rang are gone."""

    def __init__(self, project: EvalProject) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(30)
        self._rung: list[socket.socket] = []
        project.environ["DESK_BELL"] = str(self._socket.getsockname()[1])

    def hear(self, times: int) -> None:
        """Wait until a number of calls are under way."""
        for _ in range(times):
            connection, _ = self._socket.accept()
            connection.settimeout(20)
            self._rung.append(connection)

    def all_gone(self) -> bool:
        """Wait until every server that rang has ended."""
        try:
            return all(one.recv(1) == b"" for one in self._rung)
        except ConnectionResetError:
            return True

    def close(self) -> None:
        """Let go of the sockets."""
        for one in (*self._rung, self._socket):
            one.close()


def junit_cases(path: Path) -> dict[str, str]:
    """Return how each testcase of a JUnit file came out: passed, failure, error or skipped."""
    found: dict[str, str] = {}
    for one in ElementTree.parse(path).iter("testcase"):
        name = f"{one.get('classname')}::{one.get('name')}"
        assert name not in found, f"two testcases {name}"
        marks = [child.tag for child in one if child.tag in ("failure", "error", "skipped")]
        assert len(marks) <= 1, f"{name}: {marks}"
        found[name] = marks[0] if marks else "passed"
    return found
