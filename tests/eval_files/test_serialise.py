from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_mst.eval_files.serialise import loaded_from_json, loaded_to_json
from tests.eval_files.evals import DATA, load, write

texts = st.text(st.characters(exclude_categories=["Cc"]), max_size=8)
named = texts.filter(lambda text: text.strip() != "")
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
    | st.just("\ud800 alone"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40)
@given(ids=st.lists(named, min_size=1, max_size=3, unique=True), value=values, text=texts)
def test_a_loaded_eval_comes_back_as_it_was(
    tmp_path_factory: Any, ids: list[str], value: object, text: str
) -> None:
    folder: Path = tmp_path_factory.mktemp("evals")
    content = {
        "name": "team",
        "servers": {"chat": {"transport": "stdio", "command": "x", "env": {"T": "${T}"}}},
        "clientOptions": {"value": value},
        "variants": [{"name": "a", "model": None}, {"name": "b", "writes": {"chat": "unguarded"}}],
        "cases": [
            {
                "id": one,
                "input": "x\ud800",
                "expected": {"writes": [{"tool": "t", "arguments": {"a": value}}], "free": value},
                "metadata": {text: value},
            }
            for one in ids
        ],
    }
    path = folder / "x.eval.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    loaded = load(path, {"T": "mst-secret-123456"})
    written = loaded_to_json(loaded)
    assert "mst-secret-123456" not in written
    assert written.isascii()
    back = loaded_from_json(written)
    assert back == loaded
    assert loaded_to_json(back) == written


def test_what_was_left_out_stays_left_out(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "name: team\nvariants: [{name: a, model: null}, {name: b}]\n"
        "cases: [{id: a, input: x, judges: [correctness]}]",
    )
    first, second = loaded_from_json(loaded_to_json(load(path))).config.variants
    assert "model" in first.model_fields_set
    assert "model" not in second.model_fields_set


def test_an_older_dataset_comes_back_too(tmp_path: Path) -> None:
    legacy = (DATA / "legacy-dataset.json").read_text(encoding="utf-8")
    write(tmp_path, legacy, "cases.json")
    loaded = load(write(tmp_path, "name: team\ndatasets: [cases.json]"))
    assert loaded_from_json(loaded_to_json(loaded)) == loaded
