"""What an attempt is made from, and the key that says what could change what the client did."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.attempt.identity import identity_of
from pytest_mst.attempt.job import Target
from pytest_mst.attempt.target import target_of
from pytest_mst.clients.scripted import ScriptedClient
from pytest_mst.domain.case import Case
from pytest_mst.domain.run import AttemptId, locator
from pytest_mst.domain.write import WriteMode
from tests.attempt.evals import BROKEN, eval_of, prepared_of
from tests.attempt.setting import RUN_ID, job, target

FOLDER = Path(__file__).parent
STDIO: dict[str, Any] = {
    "transport": "stdio",
    "command": "python",
    "args": ["server.py", "--key", "${KEY}"],
    "env": {"TOKEN": "${TOKEN}", "LEVEL": "debug"},
    "readOnlyTools": ["purge", "write_slowly"],
}
HTTP: dict[str, Any] = {
    "transport": "http",
    "serverUrl": "http://127.0.0.1:1/${KEY}",
    "headers": {"X-A": "1", "X-B": "${TOKEN}"},
    "start": {"command": "serve", "readyUrl": "http://127.0.0.1:1/health"},
}
EVAL: dict[str, Any] = {
    "servers": {"notes": STDIO, "web": HTTP},
    "model": "m-1",
    "clientOptions": {"a": 1, "b": {"x": 1, "y": [2, 1]}},
    "variants": [{"name": "v", "clientOptions": {"c": 3}}],
}
CASE: dict[str, Any] = {"clientOptions": {"d": 4}}


def target_for(
    environ: dict[str, str] | None = None, folder: Path = FOLDER, **changes: Any
) -> Target:
    loaded = eval_of(folder, **{**EVAL, **changes})
    (variant,) = loaded.config.variants_or_default
    secrets = {"KEY": "k-secret", "TOKEN": "t-secret"} if environ is None else environ
    prepared = prepared_of(loaded)
    return target_of(prepared, variant, ScriptedClient(), secrets, log_path=None)


def key_of(case: dict[str, Any] | None = None, of: Target | None = None, **fields: Any) -> str:
    return job(of or target_for(), {**CASE, **(case or {})}, **fields).identity.key


def reversed_keys(value: Any) -> Any:
    """Write objects the other way round, at every depth."""
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(one) for one in value] if isinstance(value, list) else value


def test_options_are_the_cases_over_the_variants_over_the_evals() -> None:
    of = target_for(
        clientOptions={"a": 1, "b": 1, "c": 1},
        variants=[{"name": "v", "clientOptions": {"b": 2, "c": 2}}],
    )
    assert job(of, {"clientOptions": {"c": 3}}).options == {"a": 1, "b": 2, "c": 3}
    assert job(of).options == {"a": 1, "b": 2, "c": 2}


def test_the_model_is_the_cases_over_the_variants_over_the_evals() -> None:
    assert job(target_for()).model == "m-1"
    of = target_for(variants=[{"name": "v", "model": "m-2"}])
    assert job(of).model == "m-2"
    assert job(of, {"model": "m-3"}).model == "m-3"


def test_the_input_goes_through_the_variants_template_over_the_evals() -> None:
    assert job(target_for()).input == "do it"
    of = target_for(inputTemplate="Please {{input}}.")
    assert job(of).input == "Please do it."
    of = target_for(
        inputTemplate="Please {{input}}.", variants=[{"name": "v", "inputTemplate": "{{input}}!"}]
    )
    assert job(of).input == "do it!"


def test_a_target_has_what_an_attempt_opens_and_why_it_cannot() -> None:
    of = target_for()
    assert list(of.servers) == ["notes", "web"]
    assert of.modes == {"notes": WriteMode.PLANNED, "web": WriteMode.PLANNED}
    assert {one.isolation for one in of.servers.values()} == {"variant"}
    assert of.failure is None
    assert not of.unguarded
    assert of.tools["notes"].is_read("purge")
    loaded = eval_of(FOLDER, servers={"a": STDIO, "b": {**STDIO, "isolation": "attempt"}})
    secrets = {"KEY": "k", "TOKEN": "t"}
    (variant,) = loaded.config.variants_or_default
    prepared = prepared_of(loaded, b="gone")
    of = target_of(prepared, variant, ScriptedClient(), secrets, log_path=None)
    assert of.servers["b"].isolation == "attempt"
    assert of.failure == BROKEN


def test_the_key_does_not_depend_on_the_order_of_what_has_none() -> None:
    changed = reversed_keys(EVAL)
    changed["servers"]["notes"]["readOnlyTools"] = ["write_slowly", "purge"]
    assert json.dumps(changed) != json.dumps(EVAL)
    of = target_for(**changed)
    assert job(of, reversed_keys(CASE)).identity.key == key_of()


@pytest.mark.parametrize(
    "case",
    [
        {"trials": 9},
        {"passThreshold": 0.5},
        {"tags": ["smoke"]},
        {"description": "what for"},
        {"expected": {"writes": []}},
        {"assertions": {"containsText": "x"}},
        {"metadata": {"a": 1}},
    ],
    ids=str,
)
def test_what_only_grades_or_counts_is_not_in_the_key(case: dict[str, Any]) -> None:
    assert key_of(case) == key_of()


def grading_key_of(case: dict[str, Any] | None = None, **more: Any) -> str:
    read = Case.model_validate({"id": "c", "input": "do it", **(case or {})})
    return identity_of(read, target_for(), **more).grading_key


@pytest.mark.parametrize(
    "case",
    [
        {"expected": {"writes": []}},
        {"assertions": {"containsText": "x"}},
        {"judges": ["short"]},
    ],
    ids=str,
)
def test_what_grades_is_in_the_grading_key(case: dict[str, Any]) -> None:
    assert grading_key_of(case) != grading_key_of()


def test_judges_marks_and_the_source_of_a_body_are_in_the_grading_key_only() -> None:
    keys = {
        grading_key_of(),
        grading_key_of(judges=["kind"]),
        grading_key_of(declared_writes=True),
        grading_key_of(body="assert trial.answer"),
    }
    assert len(keys) == 4
    read = Case.model_validate({"id": "c", "input": "do it"})
    graded = identity_of(read, target_for(), judges=["kind"], declared_writes=True, body="b")
    assert graded.key == identity_of(read, target_for()).key


@pytest.mark.parametrize(
    "case",
    [
        {"trials": 9},
        {"passThreshold": 0.5},
        {"tags": ["smoke"]},
        {"description": "what for"},
        {"metadata": {"a": 1}},
        {"input": "do that"},
        {"clientOptions": {"d": 5}},
    ],
    ids=str,
)
def test_what_does_not_grade_is_not_in_the_grading_key(case: dict[str, Any]) -> None:
    assert grading_key_of(case) == grading_key_of()


def test_source_that_has_a_say_in_collecting_is_in_the_key_and_not_in_the_grading_key() -> None:
    read = Case.model_validate({"id": "c", "input": "do it"})
    one, other = (identity_of(read, target_for(), collected_by=text) for text in "ab")
    assert one.changed_from(other.parts) == ("source of the client",)
    assert one.grading_key == other.grading_key


def test_the_tools_that_servers_list_are_in_neither_key() -> None:
    read = Case.model_validate({"id": "c", "input": "do it"})
    loaded = eval_of(FOLDER, servers={"notes": {**STDIO, "readOnlyTools": []}})
    (variant,) = loaded.config.variants_or_default
    secrets = {"KEY": "k", "TOKEN": "t"}
    listed, fewer, gone = (
        identity_of(
            read,
            target_of(
                prepared_of(loaded, notes=kind), variant, ScriptedClient(), secrets, log_path=None
            ),
        )
        for kind in ("writes", "reads", "gone")
    )
    assert listed.key == fewer.key == gone.key
    assert listed.tools != fewer.tools
    assert gone.tools == ""  # unknown, and so no difference


@pytest.mark.parametrize(
    "changes",
    [
        {"trials": 9, "passThreshold": 0.5, "timeout": 5, "concurrency": 2, "filterTags": ["x"]},
        {"servers": {"notes": {**STDIO, "callTimeoutMs": 5, "connectTimeoutMs": 7}, "web": HTTP}},
        {
            "servers": {
                "notes": STDIO,
                "web": {**HTTP, "start": {**HTTP["start"], "timeoutMs": 5}, "requestTimeoutMs": 3},
            }
        },
    ],
    ids=["counts", "waits", "the wait for a start"],
)
def test_counts_and_deadlines_of_the_eval_are_not_in_the_key(changes: dict[str, Any]) -> None:
    assert key_of(of=target_for(**changes)) == key_of()


def test_the_trial_its_number_and_the_run_are_not_in_the_key(tmp_path: Path) -> None:
    other = key_of(
        {"input": "say {{trial.id}}"},
        id=AttemptId("default", "c", 7),
        locator="@abcdefgh",
        timeout_s=1.0,
        graders=(),
    )
    assert other == key_of({"input": "say {{trial.id}}"})
    assert key_of(of=target_for(folder=tmp_path)) == key_of()


def test_a_reference_to_a_secret_is_in_the_key_and_its_value_is_not() -> None:
    other = target_for({"KEY": "another", "TOKEN": "another too"})
    assert key_of(of=other) == key_of()
    assert "secret" not in json.dumps(dict(other.definitions))
    literal = {**STDIO, "env": {**STDIO["env"], "TOKEN": "${OTHER}"}}
    environ = {"KEY": "k", "TOKEN": "t", "OTHER": "t"}
    renamed = target_for(environ, servers={"notes": literal, "web": HTTP})
    assert key_of(of=renamed) != key_of()


@pytest.mark.parametrize(
    "case",
    [{"input": "do that"}, {"clientOptions": {"d": 5}}, {"model": "m-9"}],
    ids=str,
)
def test_what_the_client_is_given_is_in_the_key(case: dict[str, Any]) -> None:
    assert key_of(case) != key_of()


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "m-2"},
        {"inputTemplate": "Please {{input}}"},
        {"clientOptions": {"a": True}},
        {"writes": "simulated"},
        {"servers": {"notes": STDIO}},
        {"servers": {"notes": {**STDIO, "args": ["other.py"]}, "web": HTTP}},
        {"servers": {"notes": {**STDIO, "env": {}}, "web": HTTP}},
        {"servers": {"notes": {**STDIO, "readOnlyTools": []}, "web": HTTP}},
        {"servers": {"notes": {**STDIO, "replies": {"purge": {"ok": 1}}}, "web": HTTP}},
        {"servers": {"notes": {**STDIO, "isolation": "attempt"}, "web": HTTP}},
        {"servers": {"notes": STDIO, "web": {**HTTP, "headers": {}}}},
        {"servers": {"notes": STDIO, "web": {**HTTP, "start": None}}},
        {"servers": {"mail": STDIO, "web": HTTP}},
    ],
    ids=str,
)
def test_what_the_client_is_put_to_is_in_the_key(changes: dict[str, Any]) -> None:
    assert key_of(of=target_for(**changes)) != key_of()


def test_the_case_and_the_variant_are_in_the_key() -> None:
    other = target_for(variants=[{"name": "w", "clientOptions": {"c": 3}}])
    keys = {key_of(), key_of({"id": "another"}), key_of(of=other)}
    assert len(keys) == 3


def test_the_clients_name_is_in_the_key() -> None:
    class Other:
        name = "other"
        run = ScriptedClient().run

    assert job(target(client=Other())).identity.key != job(target()).identity.key


@given(st.text(min_size=1), st.text(min_size=1), st.integers(0, 99))
def test_the_trials_id_is_safe_in_any_text_and_its_own(variant: str, case: str, trial: int) -> None:
    one, next_one = (AttemptId(variant, case, number) for number in (trial, trial + 1))
    made = job(target())
    ids = [replace(made, id=at, locator=locator(RUN_ID, at)).trial_id for at in (one, next_one)]
    assert all(re.fullmatch(r"mst[a-z0-9]+", each) for each in ids)
    assert ids[0] != ids[1]


def test_a_target_that_could_not_be_made_has_no_server() -> None:
    missing = Target.missing("v")
    assert missing.variant == "v"
    assert not missing.servers
    assert not missing.unguarded
