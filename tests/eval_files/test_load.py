from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_mst.domain.errors import EvalFileErrors, Place
from pytest_mst.eval_files.load import load_eval
from tests.eval_files.evals import CASE, CHAT, load, only_problem, problems, write


def dataset(folder: Path, name: str, *ids: str) -> Path:
    cases = [{"id": case_id, "input": "x", "assertions": {"containsText": "x"}} for case_id in ids]
    return write(folder, json.dumps({"name": Path(name).stem, "cases": cases}), name)


def test_inline_cases_and_datasets_are_read_in_order(tmp_path: Path) -> None:
    dataset(tmp_path, "more.json", "c", "d")
    dataset(tmp_path, "data/b.yaml", "e")
    path = write(
        tmp_path,
        f"""\
        name: team
        datasets:
          - more.json
          - {{type: file, path: data/b.yaml}}
        cases:
          - {CASE}
        """,
    )
    loaded = load(path)
    assert [(one.case.id, one.dataset) for one in loaded.cases] == [
        ("a", "team"),
        ("c", "more"),
        ("d", "more"),
        ("e", "b"),
    ]
    assert [(one.name, one.case_count) for one in loaded.datasets] == [
        ("team", 1),
        ("more", 2),
        ("b", 1),
    ]
    assert loaded.cases[0].place == Place("team.eval.yaml", 6, "cases[0]")
    assert loaded.cases[2].place == Place("more.json", 1, "cases[1]")


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path: Path) -> None:
    for name in ("data/b.yml", "data/a.json", "data/c.YAML", "data/sub/d.json"):
        dataset(tmp_path, name, f"id-{name}")
    dataset(tmp_path, "data/.hidden.json", "hidden")
    write(tmp_path, "not: a dataset", "data/other.eval.yaml")
    write(tmp_path, "not a dataset", "data/notes.txt")
    flat = write(tmp_path, "name: team\ndatasets: [{type: dir, path: data}]")
    assert [one.dataset for one in load(flat).cases] == ["a", "b", "c"]
    deep = write(tmp_path, "name: team\ndatasets: [{type: dir, path: data, recursive: true}]")
    assert [one.dataset for one in load(deep).cases] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("reference", "problem", "remedy"),
    [
        ("gone.json", 'there is no "gone.json"', "paths are relative to the folder of this file"),
        ("empty", '"empty" is a folder', "write {type: dir, path: empty}"),
        (
            "{type: dir, path: one.json}",
            '"one.json" is a file, not a folder',
            "leave out type: dir",
        ),
        (
            "{type: dir, path: empty}",
            'no dataset (.json, .yaml, .yml) is in the folder "empty"',
            "recursive: true searches the folders in it too",
        ),
        (
            "{type: dir, path: empty, recursive: true}",
            'no dataset (.json, .yaml, .yml) is in the folder "empty"',
            None,
        ),
        ("{path: one.json, recursive: true}", "has recursive, which is for type: dir", None),
        ("3", "expected a path, or an object with type and path, got number", None),
    ],
)
def test_a_reference_that_leads_nowhere_is_told_where_it_is_written(
    tmp_path: Path, reference: str, problem: str, remedy: str | None
) -> None:
    dataset(tmp_path, "one.json", "a")
    (tmp_path / "empty").mkdir()
    error = only_problem(write(tmp_path, f"name: team\ndatasets:\n- one.json\n- {reference}\n"))
    if problem.startswith(("has recursive", "expected")):
        assert error.place == Place("team.eval.yaml", 4, "datasets[1]")
    assert (error.place.line, error.problem, error.remedy) == (4, problem, remedy)


def test_a_path_that_no_file_can_have_is_told_like_any_other(tmp_path: Path) -> None:
    error = only_problem(write(tmp_path, f"name: team\ndatasets: [{'x' * 300}.json]"))
    assert error.place.key == "datasets[0]"
    assert "cannot be read" in error.problem


def test_a_link_that_leads_in_a_circle_is_told_like_a_missing_file(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.json").symlink_to("a.json")
    found = problems(write(tmp_path, "name: team\ndatasets: [{type: dir, path: data}]"))
    assert [error.place.file for error in found] == ["a.json"]


def test_a_file_that_is_named_twice_is_told_once(tmp_path: Path) -> None:
    dataset(tmp_path, "data/one.json", "a", "b")
    path = write(tmp_path, "name: team\ndatasets:\n- data/one.json\n- {type: dir, path: data}\n")
    error = only_problem(path)
    assert error.problem == '"one.json" is read already, by line 3'


@pytest.mark.parametrize("name", ["cases.txt", "cases.jsonl", "cases"])
def test_a_dataset_of_another_kind_of_file_is_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path, "{}", name)
    error = only_problem(write(tmp_path, f"name: team\ndatasets: [{name}]"))
    assert error.place == Place(name)
    assert error.remedy == "name it .json or .yaml or .yml"


def test_a_list_of_cases_alone_is_no_dataset(tmp_path: Path) -> None:
    write(tmp_path, "[]", "cases.json")
    error = only_problem(write(tmp_path, "name: team\ndatasets: [cases.json]"))
    assert (error.place, error.problem) == (
        Place("cases.json", 1, None),
        "expected an object, got array",
    )


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        (b"name: team\ncases: [\xff]\n", 2, "is not text in UTF-8"),
        (b"\xff\xfen\x00a\x00", 1, "is not text in UTF-8"),
        (b"", 1, "the file is empty"),
    ],
)
def test_a_file_that_is_no_text_is_refused(
    tmp_path: Path, content: bytes, line: int, problem: str
) -> None:
    path = tmp_path / "team.eval.yaml"
    path.write_bytes(content)
    error = only_problem(path)
    assert (error.place.line, error.problem) == (line, problem)


def test_a_byte_order_mark_is_no_content(tmp_path: Path) -> None:
    for name, content in (("a.eval.yaml", f"name: team\ncases: [{CASE}]"), ("b.eval.json", None)):
        text = content or json.dumps(
            {"name": "team", "cases": [{"id": "a", "input": "x", "judges": ["correctness"]}]}
        )
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.encode())
        assert load(tmp_path / name).config.name == "team"


def test_a_config_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert only_problem(tmp_path / "gone.eval.yaml").problem == "there is no such file"
    (tmp_path / "x.eval.yaml").mkdir()
    assert only_problem(tmp_path / "x.eval.yaml").problem == "is a folder, not a file"


def test_files_are_shown_relative_to_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    for path, shown in (
        (Path("evals/a.eval.yaml"), "evals/a.eval.yaml"),
        (tmp_path / "work" / "a.eval.yaml", "a.eval.yaml"),
        (tmp_path / "a.eval.yaml", str(tmp_path / "a.eval.yaml")),
    ):
        with pytest.raises(EvalFileErrors) as refused:
            load_eval(path, environ={})
        assert refused.value.errors[0].place.file == shown


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name: team", "the eval has no cases"),
        ("name: team\ncases: []", "the eval has no cases"),
        ("name: team\ndatasets: [none.json]", "the datasets have no cases"),
    ],
)
def test_an_eval_without_cases_is_refused_unless_test_functions_are_its_cases(
    tmp_path: Path, text: str, problem: str
) -> None:
    dataset(tmp_path, "none.json")
    path = write(tmp_path, text)
    assert only_problem(path).problem == problem
    assert load_eval(path, environ={}, needs_cases=False).cases == ()


def test_everything_that_is_wrong_in_all_files_is_told_at_once(tmp_path: Path) -> None:
    write(tmp_path, '{"name": "one", "cases": [\n{"id": "a"}]}', "one.json")
    write(tmp_path, "name: two\ncases: [", "two.yaml")
    write(
        tmp_path,
        "name: three\ncases:\n- {id: b, input: x, promt: y}\n- {id: b, id: c}",
        "three.yaml",
    )
    path = write(
        tmp_path,
        """\
        name: team
        datasets: [one.json, two.yaml, three.yaml]
        servers: {chat: {transport: stdio}}
        trials: none
        trials: 3
        """,
    )
    assert [(error.place.file, error.place.line, error.place.key) for error in problems(path)] == [
        ("team.eval.yaml", 3, "servers.chat.command"),
        ("team.eval.yaml", 4, "trials"),
        ("team.eval.yaml", 5, "trials"),
        ("one.json", 2, "cases[0].input"),
        ("two.yaml", 2, None),
        ("three.yaml", 3, "cases[0].promt"),
        ("three.yaml", 4, "cases[1].id"),
        ("three.yaml", 4, "cases[1].input"),
    ]


def test_a_dataset_is_hashed_by_its_content_alone(tmp_path: Path) -> None:
    case = {"id": "a", "input": "x", "judges": ["correctness"], "expected": {"n": 1.5, "t": "no"}}
    content = {"name": "d", "cases": [case]}
    turned = {
        "$schema": "dataset.schema.json",
        "cases": [dict(reversed(case.items()))],
        "name": "d",
    }
    in_yaml = """\
        name: d
        cases:
          - input: x
            id: a
            expected: {t: no, n: 1.5}   # a remark
            judges: [correctness]
        """
    changed = {"name": "d", "cases": [{**case, "input": "y"}]}
    write(tmp_path, json.dumps(content), "a.json")
    write(tmp_path, json.dumps(turned, indent=4), "b.json")
    write(tmp_path, in_yaml, "c.yaml")
    write(tmp_path, json.dumps(changed), "d.json")
    hashes = [
        load(write(tmp_path, f"name: team\ndatasets: [{name}]")).datasets[0].content_hash
        for name in ("a.json", "b.json", "c.yaml", "d.json")
    ]
    assert hashes[0] == hashes[1] == hashes[2] != hashes[3]


def test_places_say_where_the_config_says_things(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        f"""\
        # what it is for
        name: team
        servers:
          {CHAT}
          docs: {{transport: stdio, command: python}}
        writes:
          chat: simulated
        trials: 3
        clientOptions: {{maxTurns: 3}}
        variants:
          - name: one
          - name: two
            writes: planned
        cases: [{CASE}]
        """,
    )
    loaded = load(path)
    lines = {
        ".".join(keys): loaded.place(*keys).line
        for keys in [
            (),
            ("name",),
            ("servers", "chat"),
            ("servers", "docs"),
            ("writes",),
            ("writes", "chat"),
            ("writes", "docs"),
            ("variants", "two"),
            ("clientOptions",),
            ("trials",),
            ("client",),
        ]
    }
    assert list(lines.values()) == [2, 2, 4, 5, 6, 7, 6, 12, 9, 8, 2]
    assert loaded.place("servers", "chat") == Place("team.eval.yaml", 4, "servers.chat")


def test_cases_are_chosen_by_tag(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """\
        name: team
        filterTags: [on]
        cases:
          - {id: a, input: x, judges: [correctness], tags: [on, slow]}
          - {id: b, input: x, judges: [correctness], tags: [off]}
          - {id: c, input: x, judges: [correctness]}
        """,
    )
    loaded = load(path)
    assert [one.case.id for one in loaded.tagged(loaded.config.filter_tags)] == ["a"]
    assert [one.case.id for one in loaded.tagged(["off", "slow"])] == ["a", "b"]
    assert len(loaded.tagged([])) == 3


def test_cases_that_share_an_anchor_share_no_value(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """\
        name: d
        cases:
          - &base {id: a, input: x, judges: [correctness], metadata: {tags: [x]}}
          - {<<: *base, id: b}
        """,
        "cases.yaml",
    )
    eval_path = write(tmp_path, f"name: team\ndatasets: [{path.name}]")
    first, second = (one.case for one in load(eval_path).cases)
    first.metadata["tags"].append("y")
    assert second.metadata == {"tags": ["x"]}
    assert [one.case.metadata for one in load(eval_path).cases] == [{"tags": ["x"]}] * 2
