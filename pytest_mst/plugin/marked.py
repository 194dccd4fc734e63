"""Test functions that are eval cases: their variants, and what their items carry."""

from __future__ import annotations

import pytest

from pytest_mst.attempt.job import Target
from pytest_mst.attempt.prepared import PreparedEval
from pytest_mst.attempt.write_modes import write_modes
from pytest_mst.domain.errors import MarkerError, MstError, SelectionError
from pytest_mst.domain.eval_config import Variant
from pytest_mst.domain.write import WriteMode
from pytest_mst.plugin.case_item import TARGET_FIXTURES, CaseItem
from pytest_mst.plugin.discover import config_path
from pytest_mst.plugin.eval_run import EvalRun, module_eval_name, source_of
from pytest_mst.plugin.keys import CASE, SESSION
from pytest_mst.plugin.marks import Marked, marked
from pytest_mst.plugin.outcomes import Refused
from pytest_mst.plugin.pytest_private import (
    fixture_parameters,
    overriding_fixtures,
    requested_fixtures,
)
from pytest_mst.plugin.session import EvalSession
from pytest_mst.plugin.source import body_source, target_source

VARIANT_FIXTURE = "_mst_variant"
BODY_RUNS_CLIENT = ("mst", "dry_run_proxy", "write_record")
"""Fixtures that, without `trial`, leave running the client to the test body."""

_DEFAULT_TIMEOUT_S = 300.0


def parametrize_variants(metafunc: pytest.Metafunc) -> None:
    """Give a marked test function one item for each variant of the eval it names.

    Raises:
        pytest.Collector.CollectError: a marker is wrong, or the eval it names is.

    """
    try:
        marks = marked(metafunc.definition)
        if marks is None:
            return
        session = metafunc.config.stash[SESSION]
        prepared = _prepared(session, metafunc.definition, marks)
        _check(metafunc.definition, marks, prepared)
    except MstError as error:
        raise Refused(str(error)) from None
    variants = prepared.loaded.config.variants if prepared else ()
    if variants:
        names = [one.name for one in variants if not marks.variants or one.name in marks.variants]
        metafunc.fixturenames.append(VARIANT_FIXTURE)
        metafunc.parametrize(VARIANT_FIXTURE, names, ids=names, indirect=True, scope="function")


def equip(item: pytest.Function) -> None:
    """Put on a collected item what makes it an eval case, where it is marked as one."""
    marks = marked(item)
    if marks is None:
        return
    session = item.config.stash[SESSION]
    prepared = _prepared(session, item, marks)
    config = prepared.loaded.config if prepared else None
    variant = _variant(item, prepared)
    run = session.run(module_eval_name(item.path, session.root), prepared)
    run.available += 1
    run.source = source_of(item.path, session.root)
    requested = requested_fixtures(item)
    by_body = "trial" not in requested and any(name in requested for name in BODY_RUNS_CLIENT)
    case = marks.case(_case_id(item, variant))
    threshold = config.pass_threshold if config else 1.0
    timeout_s = config.timeout / 1000 if config else _DEFAULT_TIMEOUT_S
    if config is not None:
        case = session.with_model(config, variant, case)
    overridden = overriding_fixtures(item, TARGET_FIXTURES)
    known = _known_target(session, run, prepared, variant)
    item.stash[CASE] = CaseItem(
        run=run,
        variant=variant,
        case=case,
        dataset=run.name,
        trials=session.trials(config, marks.trials),
        pass_threshold=threshold if marks.pass_threshold is None else marks.pass_threshold,
        timeout_s=marks.timeout_s or timeout_s,
        target=None if overridden else known,
        preflight=session.preflight,
        judge_entries=_judges(prepared, variant),
        registered_judges=session.judges,
        has_body=True,
        body=body_source(item),
        target_source=target_source(item, overridden, prepared, variant) if overridden else None,
        listed_by=known if set(overridden) <= {"mst_client"} else None,
        run_by="body" if by_body else "engine",
        declared_writes=marks.declared_writes,
        prepared=prepared,
        fixtures=requested,
        may_skip=_may_skip(item),
        shared_key=_shared_key(item, overridden, variant, marks),
    )


def _known_target(
    session: EvalSession, run: EvalRun, prepared: PreparedEval | None, variant: Variant
) -> Target | None:
    """Return what a case is put to where no fixture has a say in it."""
    if prepared is None:
        return None
    client = session.client(prepared.loaded.config, variant)
    return session.target(run, prepared, variant, client)


def _prepared(session: EvalSession, node: pytest.Item, marks: Marked) -> PreparedEval | None:
    """Return the eval that a marker names; `None` where a fixture gives it."""
    if marks.config is not None:
        path = config_path(node.path, marks.config)
        if not path.is_file():
            raise MarkerError(
                node.nodeid,
                "mst",
                f"names config {marks.config!r}, which is not there",
                f"the path is relative to the test file: there is no file {path.name!r} in "
                f"{marks.config.rpartition('/')[0] or 'its folder'}",
            )
        return session.prepared_at(path)
    if "mst_config" in overriding_fixtures(node, TARGET_FIXTURES):
        return None
    raise MarkerError(
        node.nodeid,
        "mst",
        "names no eval config",
        "add config='path/of.eval.yaml', or override the fixture mst_config",
    )


def _check(node: pytest.Item, marks: Marked, prepared: PreparedEval | None) -> None:
    """Refuse what could not be graded, or names what is not there."""
    requested = requested_fixtures(node)
    runs_client = [name for name in BODY_RUNS_CLIENT if name in requested]
    if "trial" in requested and "mst" in requested:
        raise MarkerError(
            node.nodeid,
            "mst",
            "is on a test that asks for both `trial` and `mst`",
            "ask for `trial` to grade a finished attempt, or for `mst` to run the client yourself",
        )
    if marks.input is None and not runs_client:
        raise MarkerError(node.nodeid, "mst", "gives no input", "add input='what a user would say'")
    graded_by_marks = marks.writes is not None or marks.declared_writes
    if "trial" not in requested and not runs_client and not graded_by_marks:
        raise MarkerError(
            node.nodeid,
            "mst",
            "is on a test with nothing to grade",
            "ask for the fixture `trial` and assert on it, or add @pytest.mark.writes(...)",
        )
    if prepared is None:
        return
    config = prepared.loaded.config
    _check_not_live(node, marks, prepared)
    names = [one.name for one in config.variants_or_default]
    for name in marks.variants:
        if name not in names:
            option = f"{node.nodeid}: @pytest.mark.mst(variants=)"
            raise SelectionError(option, name, names)
    overridden = overriding_fixtures(node, TARGET_FIXTURES)
    for call in (marks.writes or {}).get("calls", ()):
        label = call.get("server")
        if label is not None and label not in config.servers and not overridden:
            option = f"{node.nodeid}: @pytest.mark.writes(server=)"
            raise SelectionError(option, label, list(config.servers))


def _check_not_live(node: pytest.Item, marks: Marked, prepared: PreparedEval) -> None:
    """Refuse a write case whose writes would really be made, and by nobody be checked."""
    if marks.writes is None and not marks.declared_writes:
        return
    loaded, session = prepared.loaded, node.config.stash[SESSION]
    for variant in session.variants(loaded.config):
        modes = write_modes(loaded, variant, prepared.servers)
        live = [label for label, mode in modes.items() if mode is WriteMode.LIVE]
        if live and (not marks.variants or variant.name in marks.variants):
            raise MarkerError(
                node.nodeid,
                "writes",
                f"is on a test whose server {live[0]!r} is live by variant {variant.name!r}, and "
                "a test function has no outcome checks",
                "write the case in an eval file, with `expected.outcome`, or name variants that "
                "stop writes in @pytest.mark.mst(variants=)",
            )


def _variant(item: pytest.Function, prepared: PreparedEval | None) -> Variant:
    callspec = getattr(item, "callspec", None)
    name = callspec.params.get(VARIANT_FIXTURE) if callspec is not None else None
    there = prepared.loaded.config.variants_or_default if prepared else ()
    return next((one for one in there if one.name == name), None) or (
        there[0] if there else Variant(name="default")
    )


def _judges(prepared: PreparedEval | None, variant: Variant) -> tuple[object, ...]:
    if prepared is None:
        return ()
    return prepared.loaded.config.judges_of(variant)


def _may_skip(item: pytest.Item) -> bool:
    """Tell whether a mark may skip the item, so that running it ahead could be in vain."""
    return any(item.get_closest_marker(name) for name in ("skip", "skipif"))


def _case_id(item: pytest.Function, variant: Variant) -> str:
    """Return the item's own name in its file, less the variant."""
    name = item.nodeid.partition("::")[2]
    callspec = getattr(item, "callspec", None)
    if callspec is None or VARIANT_FIXTURE not in callspec.params:
        return name
    stem, _, ids = name.rpartition("[")
    rest = ids.removesuffix("]").removesuffix(variant.name).removesuffix("-")
    return f"{stem}[{rest}]" if rest else stem


def _shared_key(
    item: pytest.Function, overridden: dict[str, object], variant: Variant, marks: Marked
) -> tuple[object, ...] | None:
    """Return what tells items apart whose fixtures give them different targets.

    `None` where a target is the item's own: one of the overriding fixtures is made anew for
    each function or class.
    """
    if not overridden or any(
        getattr(one, "scope", "function") in ("function", "class") for one in overridden.values()
    ):
        return None
    module = item.getparent(pytest.Module)
    defined_by = tuple(sorted(map(id, overridden.values())))
    makes_writes = marks.declared_writes or marks.writes is not None  # no live server is for it
    parameters = fixture_parameters(item, VARIANT_FIXTURE)
    return (module, marks.config, variant.name, defined_by, parameters, makes_writes)


def choose(session: EvalSession, items: list[pytest.Item]) -> list[pytest.Item]:
    """Take out the marked tests that tags or variants do not choose, and return them."""
    left_out = []
    for item in list(items):
        case_item = item.stash.get(CASE, None)
        if case_item is None or not case_item.has_body:
            continue
        config = case_item.prepared.loaded.config if case_item.prepared else None
        tags = set(session.tags(config) if config else session.settings.tags)
        variants = session.settings.variants
        if (tags and not tags & set(case_item.case.tags)) or (
            variants and case_item.variant.name not in variants
        ):
            left_out.append(item)
            items.remove(item)
    return left_out
