"""Write modes: which one each server has, and which variants can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.attempt.write_modes import check_comparable, labels_of, stated_mode, write_modes
from pytest_mst.domain.errors import LoadCheckError
from pytest_mst.domain.eval_config import Variant
from pytest_mst.domain.write import WriteMode
from tests.attempt.evals import eval_of, prepared_of, state
from tests.attempt.setting import small_config

A, B, C = "a", "b", "c"
CONFIG = small_config()
FOLDER = Path(__file__).parent
STATED = st.sampled_from(["planned", "simulated", "server-planned", "live", "unguarded"])
BY_LABEL = st.fixed_dictionaries({}, optional=dict.fromkeys((A, B, C), STATED))
WRITES = st.none() | st.sampled_from(["planned", "simulated"]) | BY_LABEL
KINDS = st.fixed_dictionaries({label: st.sampled_from(["reads", "writes"]) for label in (A, B, C)})


def variant(name: str = "v", **keys: Any) -> Variant:
    return Variant.model_validate({"name": name, **keys})


def modes_of(kinds: Mapping[str, str], of: Variant, **keys: Any) -> dict[str, WriteMode]:
    """Settle the modes of servers that are as `kinds` says."""
    loaded = eval_of(FOLDER, servers=dict.fromkeys(kinds, CONFIG), **keys)
    servers = {label: state(label, kind) for label, kind in kinds.items()}
    return write_modes(loaded, of, servers)


def test_planned_is_the_mode_of_what_writes_where_nothing_is_said() -> None:
    kinds = {A: "writes", B: "reads", C: "gone"}
    assert modes_of(kinds, variant()) == {
        A: WriteMode.PLANNED,
        B: WriteMode.READ_ONLY,
        C: WriteMode.PLANNED,
    }


def test_a_server_that_could_not_be_listed_keeps_its_stated_mode() -> None:
    kinds = {A: "gone", B: "gone"}
    assert modes_of(kinds, variant(), writes={A: "simulated"}) == {
        A: WriteMode.SIMULATED,
        B: WriteMode.PLANNED,
    }


def test_a_variant_gives_its_client_the_servers_it_names() -> None:
    loaded = eval_of(FOLDER, servers=dict.fromkeys((A, B), CONFIG))
    assert labels_of(loaded.config, variant()) == (A, B)
    assert labels_of(loaded.config, variant(servers=[B])) == (B,)
    assert labels_of(loaded.config, variant(servers=[])) == ()
    assert modes_of({A: "writes", B: "writes"}, variant(servers=[B])) == {B: WriteMode.PLANNED}


def test_a_variants_word_stands_over_the_evals_label_by_label() -> None:
    of = variant(writes={A: "unguarded"})
    assert modes_of({A: "writes", B: "writes"}, of, writes="simulated") == {
        A: WriteMode.UNGUARDED,
        B: WriteMode.SIMULATED,
    }


def test_many_tools_without_a_mode_are_named_up_to_a_few() -> None:
    with pytest.raises(LoadCheckError) as caught:
        modes_of({A: "writes"}, variant(), writes={})
    assert caught.value.tools == ("write_note", "purge", "write_slowly")


@given(KINDS, WRITES, WRITES)
def test_every_server_has_a_known_mode_or_the_run_is_refused(
    kinds: dict[str, str], of_eval: Any, of_variant: Any
) -> None:
    of = variant(writes=of_variant)
    keys = {} if of_eval is None else {"writes": of_eval}
    loaded = eval_of(FOLDER, servers=dict.fromkeys(kinds, CONFIG), **keys)
    stated = {label: stated_mode(loaded.config, of, label) for label in kinds}
    if any(kinds[label] == "writes" and stated[label] is None for label in kinds):
        with pytest.raises(LoadCheckError) as caught:
            modes_of(kinds, of, **keys)
        assert kinds[caught.value.server or ""] == "writes"
        assert stated[caught.value.server or ""] is None
        return
    modes = modes_of(kinds, of, **keys)
    assert modes.keys() == kinds.keys()
    for label, mode in modes.items():
        expected = "read-only" if kinds[label] == "reads" else stated[label]
        assert mode == expected


@pytest.mark.parametrize("stated", ["planned", "simulated", "server-planned", "live", "unguarded"])
def test_a_server_that_only_reads_is_read_only_whatever_is_stated(stated: str) -> None:
    assert modes_of({A: "reads"}, variant(), writes={A: stated}) == {A: WriteMode.READ_ONLY}
    assert modes_of({A: "writes"}, variant(), writes={A: stated}) == {A: WriteMode(stated)}


def direct_mode(kind: str, of: Variant | None = None, **keys: Any) -> WriteMode:
    """Settle the mode of a server that the client is connected to directly."""
    loaded = eval_of(FOLDER, servers={A: CONFIG | {"direct": True}}, **keys)
    return write_modes(loaded, of or variant(), {A: state(A, kind)})[A]


def test_a_direct_server_that_only_reads_is_read_only() -> None:
    assert direct_mode("reads") is WriteMode.READ_ONLY
    assert direct_mode("reads", writes="simulated") is WriteMode.READ_ONLY
    assert direct_mode("reads", writes={}) is WriteMode.READ_ONLY
    assert direct_mode("reads", writes={A: "unguarded"}) is WriteMode.READ_ONLY


@pytest.mark.parametrize("keys", [{}, {"writes": "simulated"}, {"writes": {}}])
def test_a_direct_server_with_tools_that_write_is_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(LoadCheckError) as caught:
        direct_mode("writes", **keys)
    assert caught.value.server == A
    assert caught.value.tools == ("write_note", "purge", "write_slowly")
    assert caught.value.remedy is not None
    assert "leave out `servers.a.direct`" in caught.value.remedy
    assert "`a: unguarded`" in caught.value.remedy


def test_a_direct_server_that_writes_is_accepted_unguarded_by_its_label() -> None:
    assert direct_mode("writes", writes={A: "unguarded"}) is WriteMode.UNGUARDED
    of = variant(writes={A: "unguarded"})
    assert direct_mode("writes", of, writes="simulated") is WriteMode.UNGUARDED


@pytest.mark.parametrize("stated", ["planned", "simulated", "server-planned", "live"])
@pytest.mark.parametrize("kind", ["reads", "writes", "gone"])
def test_no_mode_that_needs_a_proxy_can_be_stated_for_a_direct_server(
    stated: str, kind: str
) -> None:
    for of, keys in (
        (variant(), {"writes": {A: stated}}),
        (variant(writes={A: stated}), {"writes": {A: "unguarded"}}),
    ):
        with pytest.raises(LoadCheckError) as caught:
            direct_mode(kind, of, **keys)
        assert caught.value.server == A
        assert f"cannot be {stated}" in caught.value.problem


def test_a_direct_server_that_could_not_be_listed_keeps_what_it_may_be() -> None:
    assert direct_mode("gone") is WriteMode.READ_ONLY
    assert direct_mode("gone", writes={A: "unguarded"}) is WriteMode.UNGUARDED


def compare(kinds: Mapping[str, str], *variants: dict[str, Any], **keys: Any) -> None:
    """Check variants of one eval against each other."""
    named = [variant(f"v{at}", **one) for at, one in enumerate(variants)]
    loaded = eval_of(FOLDER, servers=dict.fromkeys(kinds, CONFIG), variants=named, **keys)
    check_comparable(prepared_of(loaded, **kinds), named)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"writes": "planned"}, {"writes": "simulated"}),
        ({"writes": {A: "unguarded"}}, {}),
        ({"writes": "simulated"}, {"writes": {A: "planned", B: "simulated"}}),
    ],
)
def test_one_label_with_two_modes_is_refused_and_named(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    with pytest.raises(LoadCheckError) as caught:
        compare({A: "writes", B: "writes"}, first, second)
    assert caught.value.server == A
    assert caught.value.remedy is not None
    assert "--mst-variant" in caught.value.remedy


def test_stopped_servers_answer_alike_over_all_labels() -> None:
    kinds = {A: "writes", B: "writes"}
    mixed = {"writes": {A: "planned", B: "simulated"}}
    with pytest.raises(LoadCheckError) as caught:
        compare(kinds, {"servers": [A]}, {"servers": [B], "writes": "simulated"})
    assert caught.value.server is None
    assert "'v0': a planned" in caught.value.problem
    assert "'v1': b simulated" in caught.value.problem
    with pytest.raises(LoadCheckError):
        compare(kinds, mixed, mixed)


def test_read_only_fits_any_mode() -> None:
    kinds = {A: "reads", B: "writes"}
    compare(kinds, {"writes": {A: "planned", B: "simulated"}}, {"writes": "simulated"})
    compare(kinds, {"servers": [A]}, {"writes": "simulated"})


def test_unguarded_beside_a_stopped_server_is_alike_where_each_label_is() -> None:
    one = {"writes": {A: "unguarded", B: "simulated"}}
    compare({A: "writes", B: "writes"}, one, one, {"servers": [A], "writes": {A: "unguarded"}})


def test_a_variant_alone_is_compared_with_nothing() -> None:
    compare({A: "writes", B: "writes"}, {"writes": {A: "planned", B: "simulated"}})


@pytest.mark.parametrize("mode", ["server-planned", "live"])
def test_servers_that_answer_writes_themselves_have_to_be_the_same_ones(mode: str) -> None:
    kinds = {A: "writes", B: "writes", C: "writes"}
    stated: dict[str, Any] = {"writes": {A: mode, B: mode, C: "simulated"}}
    with pytest.raises(LoadCheckError) as caught:
        compare(kinds, {"servers": [A, C]}, {"servers": [C]}, {"servers": [A]}, **stated)
    assert caught.value.server == A
    assert f"variant 'v0': a {mode}; variant 'v1': none; variant 'v2': a {mode}" in (
        caught.value.problem
    )
    compare(kinds, {"servers": [A, C]}, {"servers": [A]}, {"servers": [A, C]}, **stated)
    compare(kinds, {"servers": [C]}, {"servers": []}, **stated)


def test_what_is_the_same_server_is_told_by_its_definition() -> None:
    _compare_a_with_b(CONFIG)
    with pytest.raises(LoadCheckError) as caught:
        _compare_a_with_b(CONFIG | {"env": {"SPACE": "other"}})
    assert "variant 'one': a live; variant 'two': b live" in caught.value.problem


def _compare_a_with_b(definition_of_b: dict[str, Any]) -> None:
    """Compare a variant of one live server with one of another."""
    one, two = variant("one", servers=[A]), variant("two", servers=[B])
    loaded = eval_of(
        FOLDER,
        servers={A: CONFIG, B: definition_of_b},
        variants=[one, two],
        writes={A: "live", B: "live"},
    )
    check_comparable(prepared_of(loaded), [one, two])


def test_the_same_server_answers_alike_in_one_mode_only() -> None:
    kinds = {A: "writes", B: "writes"}
    with pytest.raises(LoadCheckError):
        compare(kinds, {"servers": [A]}, {"servers": [B]}, writes={A: "live", B: "server-planned"})
    with pytest.raises(LoadCheckError):
        compare(kinds, {"servers": [A]}, {"servers": [B]}, writes={A: "live", B: "planned"})


@pytest.mark.parametrize("mode", ["server-planned", "live"])
def test_a_server_that_only_reads_here_is_no_server_that_answers_writes(mode: str) -> None:
    stated: dict[str, Any] = {"writes": {A: mode, B: "planned"}}
    compare({A: "reads", B: "writes"}, {"servers": [A, B]}, {"servers": [B]}, **stated)


@given(KINDS, st.lists(WRITES, min_size=2, max_size=3), st.randoms(use_true_random=False))
def test_who_can_be_compared_does_not_depend_on_the_order(
    kinds: dict[str, str], writes: list[Any], random: Any
) -> None:
    variants = [{} if one is None else {"writes": one} for one in writes]
    shuffled = random.sample(variants, len(variants))
    assert _refused(kinds, variants) == _refused(kinds, shuffled)


@given(KINDS, st.lists(WRITES, min_size=2, max_size=3))
def test_what_is_let_through_gives_one_kind_of_reply_to_each_write(
    kinds: dict[str, str], writes: list[Any]
) -> None:
    variants = [{} if one is None else {"writes": one} for one in writes]
    if _refused(kinds, variants):
        return
    modes = [modes_of(kinds, variant(**one)) for one in variants]
    for label in kinds:
        assert len({by_label[label] for by_label in modes} - {WriteMode.READ_ONLY}) <= 1
    stopped = {WriteMode.PLANNED, WriteMode.SIMULATED}
    assert len({mode for by_label in modes for mode in by_label.values()} & stopped) <= 1


def _refused(kinds: Mapping[str, str], variants: list[dict[str, Any]]) -> bool:
    try:
        compare(kinds, *variants)
    except LoadCheckError:
        return True
    return False
