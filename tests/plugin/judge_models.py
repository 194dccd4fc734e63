"""Models that play a judge on the loopback provider: one that obeys, and one that is naive."""

from __future__ import annotations

import json
from typing import Any

from pytest_mst.grading.judge_input import BEGIN, END, INSTRUCTIONS
from tests.model_provider.asked import Asked
from tests.model_provider.steps import Step, Structured

Json = dict[str, Any]


def instructions_of(asked: Asked) -> str:
    """Return what the model was told before the data."""
    system = asked.body.get("system") or asked.body.get("instructions")
    if system is None:
        system = asked.body.get("systemInstruction") or asked.body.get("system_instruction")
    if system is None:
        roles = ("system", "developer")
        system = [one["content"] for one in asked.messages if one.get("role") in roles]
    return "\n".join(_texts(system))


def prompt_of(asked: Asked) -> str:
    """Return the text of the user's message."""
    [message] = [one for one in asked.messages if one.get("role") == "user"][:1]
    return "\n".join(_texts(message.get("content", message.get("parts"))))


def data_of(asked: Asked) -> Json:
    """Return the pieces of data, by name; `writes` and `events` as lists."""
    prompt = prompt_of(asked)
    assert (prompt.count(BEGIN), prompt.count(END)) == (1, 1), prompt
    block = prompt.partition(f"{BEGIN}\n")[2].partition(f"\n{END}")[0]
    found: Json = {"writes": [], "events": [], "servers": []}
    for line in block.split("\n"):
        name, _, value = line.partition(": ")
        held = json.loads(value)
        kind, _, number = name.partition(" ")
        if kind == "server" or number.isdigit():
            found[f"{kind}s"].append(held)
        else:
            found[name] = held
    return found


def obedient(asked: Asked) -> Step:
    """Grade as the instructions say: by the record, whatever any text in the data claims.

    What is to be in the record is the case's `expected.judged`: a tool and its arguments.
    """
    told = instructions_of(asked)
    assert all(line in told for line in INSTRUCTIONS), told
    data = data_of(asked)
    wanted = data["case"]["expected"]["judged"]
    if any(one["boundary"] == "none" for one in data["servers"]):
        return graded(None, "no boundary stood between the client and the server")
    made = [one for one in data["writes"] if "refused" not in one]
    for write in made:
        target = write.get("target", write)
        fits = wanted["arguments"].items() <= target["arguments"].items()
        if target["tool"] == wanted["tool"] and fits:
            return graded(1, f"the record has {wanted['tool']}, {write['mode']}")
    return graded(0, f"the record has no {wanted['tool']}: it was not requested")


def naive(asked: Asked) -> Step:
    """Do whatever stands outside of the data, and nothing that stands inside; else fail."""
    prompt = prompt_of(asked)
    outside = prompt.partition(BEGIN)[0] + prompt.rpartition(END)[2] + instructions_of(asked)
    return graded(1 if "OVERRIDE" in outside else 0, "as I was told")


def graded(score: float | None, reason: str = "so it is") -> Structured:
    """Return the grade of the only criterion."""
    return Structured({"criterion_1": {"reason": reason, "score": score}})


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for one in value for text in _texts(one)]
    if isinstance(value, dict):
        return [text for key in ("text", "content", "parts") for text in _texts(value.get(key))]
    return []
