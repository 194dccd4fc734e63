"""JSON and YAML of one content are one eval."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_mst.eval_files.json_text import read_json
from pytest_mst.eval_files.yaml_text import read_yaml
from tests.eval_files.evals import load

# Not in YAML: what its readers cannot take, and line breaks that they fold.
texts = st.text(
    st.characters(
        exclude_categories=("Cs", "Cc"), exclude_characters="\u2028\u2029\ufeff\ufffe\uffff"
    )
) | st.sampled_from(["yes", "no", "~", "02142", "1e3", "2026-01-01", "null", "0x1", "<<", "1", ""])

# A number that is written with an exponent is a number in JSON only.
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda number: "e" not in repr(number)
)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(value=values)
def test_a_value_is_read_alike_from_json_and_from_yaml(value: Any) -> None:
    from_json = read_json(json.dumps(value), "f.json")
    from_yaml = read_yaml(yaml.safe_dump(value, allow_unicode=True), "f.yaml")
    assert from_json.problems == from_yaml.problems == ()
    assert from_json.value == from_yaml.value == value


@given(value=values)
def test_json_text_is_yaml_of_the_same_value(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert read_yaml(text, "f.yaml").value == value


names = texts.filter(lambda text: text.strip() != "")
arguments = st.dictionaries(texts, values, max_size=3)
calls = st.lists(
    st.fixed_dictionaries(
        {"tool": names}, optional={"arguments": arguments, "required": st.booleans()}
    ),
    max_size=3,
)
cases = st.fixed_dictionaries(
    {
        "id": names,
        "input": names,
        "expected": st.fixed_dictionaries(
            {"writes": calls | st.fixed_dictionaries({"calls": calls, "order": st.just("strict")})},
            optional={"answer": values, "tone": texts},
        ),
    },
    optional={"tags": st.lists(texts, max_size=2), "trials": st.integers(1, 9)},
)


@settings(max_examples=40)
@given(dataset=st.lists(cases, min_size=1, max_size=3, unique_by=lambda case: str(case["id"])))
def test_an_eval_is_loaded_alike_from_json_and_from_yaml(
    tmp_path_factory: Any, dataset: list[dict[str, Any]]
) -> None:
    folder: Path = tmp_path_factory.mktemp("evals")
    content = {"name": "team", "cases": dataset, "clientOptions": {"extra": 1.5}}
    in_json, in_yaml = folder / "x.eval.json", folder / "x.eval.yaml"
    in_json.write_text(json.dumps(content), encoding="utf-8")
    in_yaml.write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
    one, other = load(in_json), load(in_yaml)
    assert one.config == other.config
    assert [case.case for case in one.cases] == [case.case for case in other.cases]
    assert one.datasets == other.datasets
