"""From attempts to the figures of a run. Pure: nothing here reads, writes or waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

from pytest_mst.domain.ending import Ending, InfrastructureFailure
from pytest_mst.domain.evidence import Evidence, lowest
from pytest_mst.domain.plan import PlannedCase, RunPlan, VariantInfo
from pytest_mst.domain.score import CaseVerdict, Ledger, TrialVerdict, case_verdict
from pytest_mst.domain.stop import Stop
from pytest_mst.report.attempts import AttemptRow, Call
from pytest_mst.report.owed import OwedCleanup
from pytest_mst.report.reasons import Reason, reasons
from pytest_mst.report.spending import NO_SPENDING, Spending
from pytest_mst.store.encode import encode

FindingKind: TypeAlias = Literal["unreported", "unrecorded", "unclassified", "refused", "unparsed"]
FINDING_KINDS: tuple[FindingKind, ...] = get_args(FindingKind)
KEPT_FINDINGS = 20
"""How many findings of one kind are kept of a case, and of a run."""
_KEPT_CHARS = 300


@dataclass(frozen=True, slots=True)
class Finding:
    """A write that somebody should look at."""

    kind: FindingKind
    server: str | None
    tool: str
    name: str
    """Server and tool, behind those of its dispatcher; text from outside, too."""
    arguments: str
    """As JSON text, cut where it is long; text from outside, not yet safe to show."""
    case: str
    variant: str
    locator: str


@dataclass(frozen=True, slots=True)
class CaseCounts:
    """How many cases came to what."""

    passed: int = 0
    failed: int = 0
    incomplete: int = 0
    skipped: int = 0

    @property
    def complete(self) -> int:
        """The cases that a pass rate is over."""
        return self.passed + self.failed

    def to_json(self) -> dict[str, int]:
        """Write the counts as stored runs hold them."""
        return {
            "passed": self.passed,
            "failed": self.failed,
            "incomplete": self.incomplete,
            "skipped": self.skipped,
        }


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One case for one variant."""

    planned: PlannedCase
    verdict: CaseVerdict | None
    """`None` for a skipped case."""
    ledger: Ledger
    passed_trials: int = 0
    reasons: tuple[Reason, ...] = ()
    evidence: Evidence | None = None
    """Of a write case: the lowest level that a graded trial's verdict rests on."""
    write_case: bool = False
    """Whether it says which writes it expects, or an attempt made one."""
    unguarded: bool = False
    """Whether it is a write case, and nobody knows what became of its writes."""
    unclassified_calls: int = 0
    unparsed_calls: int = 0
    findings: tuple[Finding, ...] = ()
    """The first `KEPT_FINDINGS` of each kind."""
    finding_counts: Mapping[FindingKind, int] = field(default_factory=dict)
    spending: Spending = NO_SPENDING
    replaced: Mapping[str, int] = field(default_factory=dict)
    """How many earlier goes at its attempts were replaced, by what broke; `trial` for trials."""

    @property
    def pass_rate(self) -> float | None:
        """The share of trials that passed, 0 to 1; `None` unless every planned trial is graded."""
        complete = self.verdict in (CaseVerdict.PASSED, CaseVerdict.FAILED)
        return self.passed_trials / self.ledger.graded if complete else None


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of several cases."""

    ledger: Ledger
    cases: CaseCounts
    passed_trials: int
    evidence: Evidence | None
    """The lowest level among the complete write cases, which the pass rate rests on."""
    unclassified_calls: int
    unparsed_calls: int
    spending: Spending = NO_SPENDING
    """What clients and judges used in the attempts that count."""

    @property
    def pass_rate(self) -> float | None:
        """The share of complete cases that passed, 0 to 1; `None` where none is complete."""
        return self.cases.passed / self.cases.complete if self.cases.complete else None

    @property
    def trial_pass_rate(self) -> float | None:
        """The share of graded trials that passed, 0 to 1; `None` where none is graded."""
        return self.passed_trials / self.ledger.graded if self.ledger.graded else None


@dataclass(frozen=True, slots=True)
class VariantRow:
    """One variant."""

    name: str
    figures: Figures
    unguarded: bool
    """Whether nobody knows what became of the writes to one of its servers."""
    live: tuple[str, ...] = ()
    """The labels of its servers whose writes are really made."""
    out_of_sight: tuple[str, ...] = ()
    """The labels of its unguarded servers that no proxy stood before."""
    unattributed: tuple[Call, ...] = ()
    """Writes over a connection that its attempts shared, of which nobody knows whose they are."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run."""

    plan: RunPlan
    figures: Figures
    """Over all variants."""
    cases: tuple[CaseRow, ...]
    """In the plan's order, skipped ones too."""
    variants: tuple[VariantRow, ...]
    findings: tuple[Finding, ...]
    """The first `KEPT_FINDINGS` of each kind."""
    finding_counts: Mapping[FindingKind, int]
    stops: tuple[Stop, ...] = ()
    """Why attempts were not begun, one for each closed gate."""
    owed: tuple[OwedCleanup, ...] = ()
    """Attempts that were not cleaned up after."""

    @property
    def replaced(self) -> Mapping[str, int]:
        """How many earlier goes at attempts were replaced, by what broke; `trial` for trials."""
        return sum((Counter(row.replaced) for row in self.cases), Counter())

    @property
    def full(self) -> bool:
        """Whether the run can stand for its eval: nothing left out, and every attempt ended."""
        return not self.plan.partial and self.figures.ledger.unstarted == 0


def case_row(case: PlannedCase, attempts: Sequence[AttemptRow]) -> CaseRow:
    """Work out one case from the rows of all its attempts."""
    if case.skip is not None:
        return CaseRow(case, None, Ledger())
    graded = [attempt.graded for attempt in attempts]
    write_case = case.write_case or any(attempt.wrote for attempt in attempts)
    found = [finding for attempt in attempts for finding in _findings(attempt)]
    counts: dict[FindingKind, int] = {
        kind: sum(one.kind == kind for one in found) for kind in FINDING_KINDS
    }
    unclassified = sum(attempt.unclassified_calls for attempt in attempts)
    # of a call that was not recorded nothing but its number is known
    counts["unclassified"] = max(counts["unclassified"], unclassified)
    return CaseRow(
        planned=case,
        verdict=case_verdict(graded, planned=case.trials, pass_threshold=case.pass_threshold),
        ledger=Ledger.of(graded),
        passed_trials=sum(one.verdict is TrialVerdict.PASSED for one in graded),
        reasons=reasons(attempts, gone=case.gone),
        evidence=lowest(one.evidence for one in graded) if write_case else None,
        write_case=write_case,
        unguarded=case.unguarded and write_case,
        unclassified_calls=unclassified,
        unparsed_calls=counts["unparsed"],
        findings=_first_of_each_kind(found),
        finding_counts=counts,
        spending=sum((attempt.spending for attempt in attempts), Spending()),
        replaced=Counter(_broke(ending) for attempt in attempts for ending in attempt.replaced),
    )


def run_summary(
    plan: RunPlan,
    rows: Sequence[CaseRow],
    unattributed: Mapping[str, tuple[Call, ...]] = MappingProxyType({}),
) -> RunSummary:
    """Work out the figures of a run from its cases.

    Args:
        plan: the run's plan.
        rows: its cases.
        unattributed: writes over connections that attempts shared, by variant.

    """
    by_variant: dict[str, list[CaseRow]] = {variant.name: [] for variant in plan.variants}
    for row in rows:
        by_variant.setdefault(row.planned.variant, []).append(row)
    told = {variant.name: variant for variant in plan.variants}
    return RunSummary(
        plan=plan,
        figures=_figures(rows),
        cases=tuple(rows),
        variants=tuple(
            _variant_row(told.get(name, VariantInfo(name, client="")), own, unattributed)
            for name, own in by_variant.items()
        ),
        findings=_first_of_each_kind(finding for row in rows for finding in row.findings),
        finding_counts={
            kind: sum(row.finding_counts.get(kind, 0) for row in rows) for kind in FINDING_KINDS
        },
    )


def _variant_row(
    variant: VariantInfo, own: Sequence[CaseRow], unattributed: Mapping[str, tuple[Call, ...]]
) -> VariantRow:
    return VariantRow(
        name=variant.name,
        figures=_figures(own),
        unguarded=variant.unguarded,
        live=variant.live,
        out_of_sight=variant.out_of_sight,
        unattributed=unattributed.get(variant.name, ()),
    )


def _figures(rows: Sequence[CaseRow]) -> Figures:
    verdicts = Counter(row.verdict for row in rows)
    complete = (CaseVerdict.PASSED, CaseVerdict.FAILED)
    return Figures(
        ledger=sum((row.ledger for row in rows), Ledger()),
        cases=CaseCounts(
            passed=verdicts[CaseVerdict.PASSED],
            failed=verdicts[CaseVerdict.FAILED],
            incomplete=verdicts[CaseVerdict.INCOMPLETE],
            skipped=verdicts[None],
        ),
        passed_trials=sum(row.passed_trials for row in rows),
        evidence=lowest(row.evidence for row in rows if row.verdict in complete),
        unclassified_calls=sum(row.unclassified_calls for row in rows),
        unparsed_calls=sum(row.unparsed_calls for row in rows),
        spending=sum((row.spending for row in rows), Spending()),
    )


def _broke(ending: Ending) -> str:
    return ending.broke.value if isinstance(ending, InfrastructureFailure) else ending.kind


def _findings(attempt: AttemptRow) -> Iterator[Finding]:
    lists: dict[FindingKind, tuple[Call, ...]] = {
        "unreported": attempt.unreported,
        "unrecorded": attempt.unrecorded,
        "unclassified": attempt.unclassified,
        "refused": attempt.refused,
        "unparsed": attempt.unparsed,
    }
    for kind, calls in lists.items():
        for call in calls:
            yield Finding(
                kind=kind,
                server=call.server,
                tool=call.tool,
                name=call.name,
                arguments=encode(call.arguments)[:_KEPT_CHARS],
                case=attempt.id.case,
                variant=attempt.id.variant,
                locator=attempt.locator,
            )


def _first_of_each_kind(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    kept: dict[FindingKind, list[Finding]] = {kind: [] for kind in FINDING_KINDS}
    for finding in findings:
        if len(kept[finding.kind]) < KEPT_FINDINGS:
            kept[finding.kind].append(finding)
    return tuple(finding for kind in FINDING_KINDS for finding in kept[kind])
