"""Datasets that older tools wrote load as they are."""

from __future__ import annotations

from pathlib import Path

from tests.eval_files.evals import DATA, load, write


def test_an_older_dataset_loads_unchanged(tmp_path: Path) -> None:
    legacy = (DATA / "legacy-dataset.json").read_text(encoding="utf-8")
    write(tmp_path, legacy, "cases.json")
    loaded = load(write(tmp_path, "name: team\ndatasets: [cases.json]"))
    first, second = (one.case for one in loaded.cases)
    assert (loaded.datasets[0].name, loaded.datasets[0].case_count) == ("support", 2)
    assert (first.id, first.trials, first.pass_threshold) == ("refund-1", 2, 0.5)
    assert first.tags == ("refund", "smoke")
    assert first.judges == ("correctness", {"type": "rubric", "rubric": "tone"})
    assert first.expected.answer == "Refund granted."
    assert first.expected.criteria == ["polite", "names the amount"]
    assert first.expected.model_extra == {
        "intent": "refund",
        "slots": {"amount": 12.5, "currency": "EUR"},
        "write": "no",
    }
    assert first.assertions.contains_text == ("refund",)
    assert first.assertions.passes_judge == {"rubric": "politeness", "threshold": 0.7}
    assert second.id == "refund 2/ä"
    assert second.assertions.passes_judge is True


def test_short_forms_say_the_same_as_long_ones(tmp_path: Path) -> None:
    short = "{writes: [{tool: t}]}, assertions: {containsText: x, toolsTriggered: [{name: t}]}"
    long = (
        "{writes: {calls: [{tool: t}]}},"
        " assertions: {containsText: [x], toolsTriggered: {calls: [{name: t}]}}"
    )
    cases = [
        load(
            write(
                tmp_path,
                f"name: team\ndatasets: [{ref}]\ncases: [{{id: a, input: x, expected: {form}}}]",
            )
        ).cases[0]
        for form, ref in ((short, "d.json"), (long, "{type: file, path: d.json}"))
        if write(tmp_path, '{"name": "d", "cases": []}', "d.json")
    ]
    assert cases[0] == cases[1]
