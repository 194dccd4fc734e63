"""Values of `${NAME}`: neither reports nor stored files say them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.plugin.booth import booth, free_port, wait_until
from tests.plugin.eval_project import (
    EvalProject,
    Json,
    Session,
    answer,
    call,
    case,
    desk,
    says,
)

SECRET = "hush-4711-do-not-tell"


@pytest.mark.parametrize("processes", ["0", "2"])
def test_what_came_from_the_environment_is_told_nowhere(
    project: EvalProject, processes: str
) -> None:
    project.environ["DESK_TOKEN"] = SECRET
    server = desk()
    server["env"]["DESK_TOKEN"] = "${DESK_TOKEN}"
    project.eval(
        case("told", call("find", key=SECRET), answer(f"no, it is {SECRET}")),
        servers={"desk": server},
        clientOptions={"script": [answer(f"it is {SECRET}")]},
    )
    project.test_file(
        """
        @pytest.mark.mst(input="x", config="desk.eval.json")
        def test_asserts(trial):
            print("printed", trial.answer)
            assert trial.answer == "something else"

        @pytest.mark.mst(input="x", config="desk.eval.json")
        async def test_runs(mst):
            answer = (await mst.run()).answer
            raise KeyError(answer)
        """
    )
    report = project.root / "report.xml"
    session = project.run("--mst", "-n", processes, f"--junitxml={report}", "-rA")
    assert session.code in (1, 10), session.text
    assert "something else" in session.out
    places = {"the terminal": session.text, "the report": report.read_text()}
    places |= {
        str(path): path.read_text()
        for path in (project.root / ".mst-results").rglob("*")
        if path.is_file()
    }
    assert any("traces" in name for name in places)
    assert [name for name, text in places.items() if SECRET in text] == []


SECRETS = {
    "DESK_TOKEN": "hush-of-the-desk-4711",
    "BOOTH_TOKEN": "hush-of-the-booth-4712",
    "BOOTH_TEAM": "hush-of-the-team-4713",
    "BOOTH_WORDS": "hush-of-the-program-4714",
    "BOOTH_WORD": "hush-of-an-argument-4715",
}
"""What is known of each server by its own way: `env`, `auth`, `headers`, and what `start` has."""


def places_of(project: EvalProject, session: Session, report: Path) -> dict[str, str]:
    """Return every text that a session has left, by where it is."""
    texts = {"the terminal": session.text, "the report": report.read_text()}
    return texts | {
        str(path.relative_to(project.root)): path.read_bytes().decode(errors="replace")
        for path in (project.root / ".mst-results").rglob("*")
        if path.is_file()
    }


def servers_with_secrets(project: EvalProject, *words: str) -> dict[str, Json]:
    """Return servers that each know some of the secrets, one of them started by the run."""
    project.environ |= SECRETS | {"BOOTH_LOG": str(project.root / "booth.jsonl")}
    server = desk()
    server["env"]["DESK_TOKEN"] = "${DESK_TOKEN}"
    started = booth(
        free_port(),
        *words,
        headers={"X-Team": "${BOOTH_TEAM}"},
        auth={"accessTokenEnv": "BOOTH_TOKEN"},
    )
    started["start"]["env"] |= {"BOOTH_WORDS": "${BOOTH_WORDS}"}
    started["start"]["args"] += ["${BOOTH_WORD}"]
    return {"desk": server, "booth": started}


@pytest.mark.parametrize("processes", ["0", "2"])
def test_what_servers_are_let_in_with_is_told_nowhere(project: EvalProject, processes: str) -> None:
    """The started server says all of it: in results, in errors, and in what it writes."""
    project.eval(
        case(
            "echoes",
            call("who_am_i", server="booth"),
            call("fall_over", server="booth"),
            call("moan", words=SECRETS["DESK_TOKEN"]),
            answer("{{last.text}} ok"),
        ),
        case(
            "repeats",
            call("who_am_i", server="booth"),
            answer("no, {{last.text}}"),
            assertions=says("something else"),
        ),
        case(
            "posts",
            call("post", server="booth", text=SECRETS["BOOTH_TOKEN"]),
            answer("ok"),
            expected={"writes": []},
        ),
        servers=servers_with_secrets(project),
    )
    report = project.root / "report.xml"
    session = project.run("--mst", "-n", processes, f"--junitxml={report}", "-rA", "-v")
    assert session.run.verdicts == {"echoes": "passed", "repeats": "failed", "posts": "failed"}
    events = session.run.trace_file("echoes")["trace"]["events"]
    assert "Bearer [redacted] and [redacted]" in json.dumps(events[0])
    assert "not for Bearer [redacted], nor with [redacted]" in json.dumps(events[1])
    places = places_of(project, session, report)
    log = next(text for name, text in places.items() if name.endswith("booth.log"))
    assert "asked by Bearer [redacted]" in log
    assert log.startswith("[redacted]\n")
    places["show"] = project.show(session.run.trial("echoes")["locator"])
    assert "[redacted]" in places["show"]
    told = [(name, place) for name in SECRETS for place in places if SECRETS[name] in places[place]]
    assert told == []


def test_what_a_program_says_when_it_cannot_be_started_is_told_without_secrets(
    project: EvalProject,
) -> None:
    project.eval(case("echoes", answer("ok")), servers=servers_with_secrets(project, "exit"))
    report = project.root / "report.xml"
    session = project.run("--mst", f"--junitxml={report}", "-rA", "-v")
    assert session.code == 10, session.text
    assert "it said: no booth today [redacted]" in session.out
    places = places_of(project, session, report)
    assert any("booth.log" in place for place in places)
    told = [(name, place) for name in SECRETS for place in places if SECRETS[name] in places[place]]
    assert told == []


def test_no_secret_is_in_the_arguments_of_a_process_of_ours(project: EvalProject) -> None:
    """Those that the config itself puts there are the user's; every other process has none."""
    servers = servers_with_secrets(project)
    del servers["booth"]["start"]["args"][-1]
    project.eval(case("waits", call("find", server="booth"), {"sleep": 60}), servers=servers)
    log = project.root / "booth.jsonl"
    with project.started("--mst", "-n", "2") as running:
        wait_until(lambda: log.exists() and '"call"' in log.read_text())
        lines = [arguments_of(pid) for pid in family(running.process.pid)]
    assert len(lines) >= 4  # the controller, its workers, the program
    assert [line for line in lines if any(secret in line for secret in SECRETS.values())] == []


def family(pid: int) -> list[int]:
    """Return a process and all that come from it."""
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


def arguments_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
