"""The options, each with its ini setting: command line over ini over what an eval config says."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

DEFAULT_CONCURRENCY = 8
DEFAULT_RESULTS = ".mst-results"

NEWEST = ""
"""What `--mst-resume` holds where it names no run."""

EVAL_SUFFIXES = (".eval.yaml", ".eval.yml", ".eval.json")
"""How the name of an eval config ends."""


def add_options(parser: pytest.Parser) -> None:
    """Declare the options and the ini settings."""
    group = parser.getgroup("mst", "evals of MCP servers and of the agents that use them")
    group.addoption(
        "--mst",
        action="store_true",
        default=None,
        help="run evals: *.eval.yaml, *.eval.yml, *.eval.json, and tests marked `mst`",
    )
    parser.addini("mst", "run evals as --mst does", type="bool", default=False)
    for name, metavar, kind, text in (
        ("variant", "NAME", "names", "run only this variant of each eval (may be repeated)"),
        ("tag", "TAG", "names", "run only cases that have this tag (may be repeated)"),
        ("trials", "N", "count", "attempts at each case, whatever the eval says"),
        ("client", "NAME", "text", "the client to use, whatever the eval says"),
        ("model", "ID", "text", "the model that clients ask, whatever the eval says"),
        ("concurrency", "N", "count", "attempts under way at once, over all workers (default: 8)"),
        ("results", "DIR", "text", f"where runs are kept (default: {DEFAULT_RESULTS} in rootdir)"),
    ):
        group.addoption(
            f"--mst-{name}",
            metavar=metavar,
            action="append" if kind == "names" else "store",
            type=_count if kind == "count" else str,
            default=None,
            dest=f"mst_{name}",
            help=text,
        )
        help_text = f"as --mst-{name}: {text}"
        if kind == "names":
            parser.addini(f"mst_{name}", help_text, type="args", default=[])
        elif kind == "count":
            parser.addini(f"mst_{name}", help_text, type="int", default=None)
        else:
            parser.addini(f"mst_{name}", help_text, type="string", default="")
    _add_resume_options(group)
    group.addoption(
        "--allow-live-writes",
        action="store_true",
        default=None,
        dest="mst_allow_live_writes",
        help="let servers with `writes: {label: live}` really write; a run is not finished with "
        "live writes unless it is given again",
    )
    group.addoption(
        "--mst-max-cost",
        metavar="USD",
        type=_amount,
        default=None,
        dest="mst_max_cost",
        help="begin no other attempt once this session's models have cost so much, as far as they "
        "report it or it can be worked out; what is left is finished with --mst-resume",
    )
    parser.addini("mst_max_cost", "as --mst-max-cost", type="string", default="")
    about = "the model of judges that name none"
    parser.addini("mst_judge_model", about, type="string", default="")
    parser.addini("mst_allow_live_writes", "as --allow-live-writes", type="bool", default=False)


def _add_resume_options(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--mst-resume",
        metavar="RUN",
        nargs="?",
        const=NEWEST,
        default=None,
        dest="mst_resume",
        help="finish a run in place: its id, the six digits at its end, or its folder (with `=`); "
        "without it the newest unfinished run of each eval in the paths given",
    )
    group.addoption(
        "--mst-fixed",
        action="store_true",
        default=False,
        dest="mst_fixed",
        help="with --mst-resume: try again also what had to be fixed first",
    )
    group.addoption(
        "--mst-strict-tools",
        action="store_true",
        default=False,
        dest="mst_strict_tools",
        help="with --mst-resume: collect anew what was collected with other tool lists",
    )
    group.addoption(
        "--mst-grade",
        metavar="RUN",
        default=None,
        dest="mst_grade",
        help="grade the stored trials of a run again, with today's graders; collect nothing; RUN "
        "as for --mst-resume",
    )


def _amount(text: str) -> float:
    """Read an amount of money above 0.

    Raises:
        ArgumentTypeError: the text is none; argparse shows the message.

    """
    try:
        amount = float(text)
    except ValueError:
        amount = math.nan
    if not 0 < amount < math.inf:
        msg = f"takes an amount in USD above 0, not {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return amount


def _count(text: str) -> int:
    """Read a whole number from 1.

    Raises:
        ArgumentTypeError: the text is none; argparse shows the message.

    """
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        msg = f"a whole number from 1 is needed, not {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return value


@dataclass(frozen=True, slots=True)
class IniSettings:
    """What holds where neither an option nor a marker nor a file says anything."""

    trials: int | None
    client: str | None
    concurrency: int | None
    results: str | None
    judge_model: str | None = None
    max_cost_usd: float | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """The options as they hold for this session; `None` leaves it to markers and files."""

    variants: tuple[str, ...]
    tags: tuple[str, ...]
    trials: int | None
    client: str | None
    concurrency: int | None
    results: str | None
    ini: IniSettings
    resume: str | None = None
    """Which run to finish; `NEWEST` for the newest unfinished run of each selected eval."""
    grade: str | None = None
    """Which run to grade again."""
    fixed: bool = False
    strict_tools: bool = False
    max_cost_usd: float | None = None
    """What this session's models may cost. Never restored with a run: each session has its own."""
    allow_live_writes: bool = False
    """Whether servers may be live. Never restored with a run: each session is asked anew."""
    model: str | None = None
    """The model that clients ask."""

    @classmethod
    def of(cls, config: pytest.Config) -> Settings:
        """Read the options, and the ini settings behind the files.

        Which cases to run is said by an option over its ini setting; what a case is put to is
        said by an option over a marker over a file over an ini setting.

        Raises:
            pytest.UsageError: an ini setting is not of its type.

        """
        return cls(
            variants=tuple(config.getoption("mst_variant") or _setting(config, "mst_variant")),
            tags=tuple(config.getoption("mst_tag") or _setting(config, "mst_tag")),
            trials=config.getoption("mst_trials"),
            client=config.getoption("mst_client"),
            concurrency=config.getoption("mst_concurrency"),
            results=config.getoption("mst_results"),
            ini=IniSettings(
                trials=_number(config, "trials"),
                client=_setting(config, "mst_client") or None,
                concurrency=_number(config, "concurrency"),
                results=_setting(config, "mst_results") or None,
                judge_model=_setting(config, "mst_judge_model") or None,
                max_cost_usd=_money(config, "mst_max_cost"),
                model=_setting(config, "mst_model") or None,
            ),
            resume=config.getoption("mst_resume"),
            grade=config.getoption("mst_grade"),
            fixed=config.getoption("mst_fixed"),
            strict_tools=config.getoption("mst_strict_tools"),
            max_cost_usd=config.getoption("mst_max_cost"),
            allow_live_writes=bool(
                config.getoption("mst_allow_live_writes")
                or _setting(config, "mst_allow_live_writes")
            ),
            model=config.getoption("mst_model"),
        )

    @property
    def may_be_live(self) -> bool:
        """Whether an eval with live servers is no mistake: it was allowed, or nothing is run."""
        return self.allow_live_writes or self.grade is not None

    @property
    def takes_up(self) -> bool:
        """Whether a stored run is finished or graded again."""
        return self.resume is not None or self.grade is not None

    @property
    def overrides(self) -> dict[str, object]:
        """What was asked for on top of the evals, as a run stores it."""
        asked: dict[str, object] = {
            "variants": list(self.variants) or None,
            "tags": list(self.tags) or None,
            "trials": self.trials,
            "client": self.client,
            "model": self.model,
        }
        return {name: value for name, value in asked.items() if value is not None}

    def results_dir(self, root: Path, stated: str | None) -> Path:
        """Return the folder that runs are kept in: option over the eval's own word over ini."""
        return root / (self.results or stated or self.ini.results or DEFAULT_RESULTS)


def is_enabled(config: pytest.Config) -> bool:
    """Tell whether evals are on.

    Raises:
        pytest.UsageError: the ini setting is neither true nor false.

    """
    asked = config.getoption("mst")
    if asked is not None:
        return bool(asked)
    return bool(_setting(config, "mst"))


def check_together(config: pytest.Config) -> None:
    """Refuse options that mean nothing without others, or not together.

    Raises:
        pytest.UsageError: there are such options.

    """
    resume, grade = config.getoption("mst_resume"), config.getoption("mst_grade")
    given = {
        "--mst-resume": resume is not None,
        "--mst-grade": grade is not None,
        "--mst-fixed": config.getoption("mst_fixed"),
        "--mst-strict-tools": config.getoption("mst_strict_tools"),
    }
    if any(given.values()) and not is_enabled(config):
        named = next(name for name, is_given in given.items() if is_given)
        msg = f"{named} does nothing without --mst"
        raise pytest.UsageError(msg)
    if grade is not None and not grade.strip():
        msg = "--mst-grade names no run: give its id, the six digits at its end, or its folder"
        raise pytest.UsageError(msg)
    if resume is not None and grade is not None:
        msg = "--mst-resume and --mst-grade exclude each other: finish the run, then grade it again"
        raise pytest.UsageError(msg)
    for name in ("--mst-fixed", "--mst-strict-tools"):
        if given[name] and resume is None:
            msg = f"{name} says how --mst-resume finishes a run; add --mst-resume"
            raise pytest.UsageError(msg)


def _setting(config: pytest.Config, name: str) -> Any:
    try:
        return config.getini(name)
    except (TypeError, ValueError, pytest.UsageError) as error:
        msg = f"the setting {name} cannot be read: {error}"
        raise pytest.UsageError(msg) from None


def _number(config: pytest.Config, name: str) -> int | None:
    value = _setting(config, f"mst_{name}")
    if value in (None, ""):
        return None
    try:
        return _count(str(value))
    except argparse.ArgumentTypeError:
        msg = f"mst_{name} takes a whole number from 1, not {value!r}"
        raise pytest.UsageError(msg) from None


def _money(config: pytest.Config, name: str) -> float | None:
    value = _setting(config, name)
    if not value:
        return None
    try:
        return _amount(str(value))
    except argparse.ArgumentTypeError as error:
        msg = f"{name} {error}"
        raise pytest.UsageError(msg) from None
