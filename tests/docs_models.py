"""The models that the documentation's runs ask: a clerk with notes, and a judge who agrees."""

from __future__ import annotations

from tests.model_provider import Asked, Step, Structured, Tool, say, use

JUDGES_TOOL = ("answer",)


def reply(asked: Asked) -> Step:
    """Look it up or delete it, as asked, and say what came of that; as a judge, agree."""
    if asked.tools == JUDGES_TOOL:
        reason = "the record has what was asked for, and the answer says no more than that"
        return Structured({"criterion_1": {"reason": reason, "score": 1}})
    if asked.turn:
        return say("Lisbon, 12 to 14 May. What was to be deleted is planned, and not done yet.")
    if "Delete" in asked.text.partition('"tools"')[0]:
        return use(Tool("delete_note", {"title": "offsite"}))
    return use(Tool("find_notes", {"word": "offsite"}))
