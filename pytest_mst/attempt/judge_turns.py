"""The waits of a judge whose model is to be asked again."""

from __future__ import annotations

from contextlib import suppress

from pytest_mst.attempt.job import AttemptJob
from pytest_mst.attempt.retry_policy import exhausted
from pytest_mst.attempt.run_rules import RunRules
from pytest_mst.domain.ending import InfrastructureError, InfrastructureFailure
from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.retry import RetryHint
from pytest_mst.store.append import RunWriter


class JudgeTurns:
    """A `TurnRetry` for one judge of one trial: the attempt has ended, so there is no deadline.

    How long a judge may take is its own `timeout`; waits are in it.
    """

    def __init__(self, judge: str, job: AttemptJob, writer: RunWriter, rules: RunRules) -> None:
        """Take a judge that has not asked yet.

        Args:
            judge: its name.
            job: the attempt whose trial it grades.
            writer: where its waits are noted as they begin.
            rules: the run's.

        """
        self._judge = judge
        self._job = job
        self._writer = writer
        self._rules = rules
        self.endpoint = ""
        """What stands for the API that is asked, once that is known."""

    async def wait(self, failure: InfrastructureFailure, hint: RetryHint, *, next_try: int) -> None:
        """Wait until the request may be made again; see `TurnRetry`.

        Raises:
            InfrastructureError: the tries are used up.

        """
        policy, backoffs = self._rules.retry, self._rules.backoffs
        if next_try > policy.tries:
            raise InfrastructureError.of(exhausted(failure, policy.tries, hint.kind))
        wait_s = policy.wait_s(next_try, hint.after_s)
        if backoffs is not None and hint.kind.of_endpoint and self.endpoint:
            backoffs.hold(self.endpoint, hint.kind, wait_s)
            known = backoffs.left(self.endpoint)
            if known is not None and known.left_s > wait_s:
                wait_s = policy.spread_s(known.left_s)
        with suppress(StoreError):  # it is only shown; nothing of the trial depends on it
            self._writer.retrying(
                self._job.id,
                self._job.locator,
                next_try=next_try,
                of=policy.tries,
                reason=f"judge {self._judge}: {hint.kind}",
                wait_ms=round(wait_s * 1000),
            )
        await policy.sleep(wait_s)

    def answered(self) -> None:
        """Do nothing: the attempt has ended, and no deadline asks what was waited for."""
