"""What an eval config says about itself: labels, names and references that must be there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_mst.domain.errors import EvalFileError
from pytest_mst.domain.eval_config import EvalConfig, HttpServer
from pytest_mst.domain.placeholder import INPUT, TRIAL_ID
from pytest_mst.eval_files.document import Document, KeyPath
from pytest_mst.eval_files.environment import reference_problems
from pytest_mst.eval_files.judge_check import check_config_judges
from pytest_mst.eval_files.placeholder_check import check_placeholders
from pytest_mst.eval_files.quoted import quoted
from pytest_mst.eval_files.suggestion import suggest


def check_config(
    document: Document, config: EvalConfig, environ: Mapping[str, str]
) -> Iterator[EvalFileError]:
    """Find what does not fit together in an eval config that has the right form."""
    yield from _servers(document, config, environ)
    yield from _labels(document, config)
    yield from _variants(document, config)
    yield from _marks(document, config)
    yield from _placeholders(document, config)
    yield from check_config_judges(document, config)


def unknown_label(
    document: Document, path: KeyPath, label: str, config: EvalConfig
) -> EvalFileError:
    """Build the error about a label that no server has."""
    remedy = suggest(label, config.servers, "labels")
    return document.error(path, f"there is no server {quoted(label)}", remedy)


def _servers(
    document: Document, config: EvalConfig, environ: Mapping[str, str]
) -> Iterator[EvalFileError]:
    for label, server in config.servers.items():
        here = ("servers", label)
        for problem in reference_problems(server, environ):
            yield document.error((*here, *problem.path), problem.problem, problem.remedy)
        if isinstance(server, HttpServer) and not server.server_url.startswith(
            ("http://", "https://", "${")
        ):
            yield document.error(
                (*here, "serverUrl"), "is not an HTTP address", "begin it with http:// or https://"
            )


def _labels(document: Document, config: EvalConfig) -> Iterator[EvalFileError]:
    """Find labels that are spoken of and that no server has."""
    paths: list[tuple[KeyPath, str]] = [
        ((key, index, "server"), step.server)
        for key, steps in (("setup", config.setup), ("cleanup", config.cleanup))
        for index, step in enumerate(steps)
    ]
    if isinstance(config.writes, dict):
        paths += [(("writes", label), label) for label in config.writes]
    for index, variant in enumerate(config.variants):
        here = ("variants", index)
        paths += [
            ((*here, "servers", position), label)
            for position, label in enumerate(variant.servers or ())
        ]
        if isinstance(variant.writes, dict):
            paths += [((*here, "writes", label), label) for label in variant.writes]
    for path, label in paths:
        if label not in config.servers:
            yield unknown_label(document, path, label, config)


def _marks(document: Document, config: EvalConfig) -> Iterator[EvalFileError]:
    """Find servers that are to plan writes themselves, and nobody says how they mark them."""
    stated: list[tuple[KeyPath, object]] = [(("writes",), config.writes)]
    stated += [(("variants", i, "writes"), one.writes) for i, one in enumerate(config.variants)]
    for path, writes in stated:
        for label, mode in writes.items() if isinstance(writes, dict) else ():
            server = config.servers.get(label)
            if mode == "server-planned" and server and server.planned_write_key is None:
                yield document.error(
                    (*path, label),
                    f"the server {quoted(label)} has no plannedWriteKey",
                    f"write under servers.{label} by which key it marks the writes that it stops",
                )


def _placeholders(document: Document, config: EvalConfig) -> Iterator[EvalFileError]:
    for key, steps in (("setup", config.setup), ("cleanup", config.cleanup)):
        for index, step in enumerate(steps):
            yield from check_placeholders(document, (key, index, "arguments"), step.arguments)
    templates: list[tuple[KeyPath, str | None]] = [((), config.input_template)]
    templates += [(("variants", i), one.input_template) for i, one in enumerate(config.variants)]
    for here, template in templates:
        path = (*here, "inputTemplate")
        yield from check_placeholders(document, path, template, (INPUT, TRIAL_ID))


def _variants(document: Document, config: EvalConfig) -> Iterator[EvalFileError]:
    first: dict[str, KeyPath] = {}
    for index, variant in enumerate(config.variants):
        path = ("variants", index, "name")
        if variant.name in first:
            line = document.place(first[variant.name]).line
            problem = f"the variant {quoted(variant.name)} is there already, in line {line}"
            yield document.error(path, problem, "give each variant a name of its own")
        first.setdefault(variant.name, path)
        given = variant.servers or ()
        for position, label in enumerate(given):
            if label in given[:position]:
                here = ("variants", index, "servers", position)
                yield document.error(here, f"the server {quoted(label)} is named twice")
    names = [variant.name for variant in config.variants_or_default]
    if config.baseline is not None and config.baseline not in names:
        problem = f"there is no variant {quoted(config.baseline)}"
        yield document.error(("baseline",), problem, suggest(config.baseline, names, "variants"))
