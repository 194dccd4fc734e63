"""Asking a judge's model through a provider, with what can go wrong there as an answer missing."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from pytest_mst.domain.ending import InfrastructureError
from pytest_mst.domain.eval_config import ModelPrice
from pytest_mst.domain.usage import Usage
from pytest_mst.grading.judge import Answered, AskedModel, Question, Reply, Unanswered
from pytest_mst.providers.endpoint import Endpoint, EndpointError, endpoint_for
from pytest_mst.providers.failure import FailureKind, ProviderError, ProviderFailure
from pytest_mst.store.redact import Redactor

if TYPE_CHECKING:
    from pytest_mst.attempt.judge_turns import JudgeTurns

JUDGE_MODEL_ENV = "MST_JUDGE_MODEL"
"""The variable that names the model of judges that name none."""
NO_MODEL = (
    f"no model to ask: give the judge a `model`, or set {JUDGE_MODEL_ENV} or the ini setting"
    " mst_judge_model"
)
_NO_HELP = frozenset({FailureKind.CONTEXT, FailureKind.REJECTED})
"""What the same question meets again, whenever it is asked."""
_SAYS_CHARS = 300


class NoEndpointError(Exception):
    """Nothing says which model a judge asks, or by which key."""


class AskJudge(Protocol):
    """Asks the model of a judge one question."""

    async def __call__(self, question: Question, turns: JudgeTurns) -> Reply:
        """Ask, wait and ask again where that can help, and return the reply."""
        ...


class ModelAsking:
    """Asks through `providers`."""

    def __init__(
        self,
        model: str | None = None,
        environ: Mapping[str, str] | None = None,
        pricing: Mapping[str, ModelPrice] | None = None,
        spent: Callable[[Usage], None] | None = None,
        why_stopped: Callable[[], str | None] | None = None,
    ) -> None:
        """Take what is the same for all judges of a run.

        Args:
            model: of judges that name none; by default what `MST_JUDGE_MODEL` says.
            environ: where keys and base URLs are; the process's by default.
            pricing: prices by model, in place of those that are known.
            spent: told of what each question took, also where its reply could not be used.
            why_stopped: says why no question is to be asked any more, where that is so.

        """
        self._model = model
        self._environ = environ
        self._pricing = pricing or {}
        self._spent = spent
        self._why_stopped = why_stopped

    def endpoint(self, asked: AskedModel) -> Endpoint:
        """Return where a judge's model is asked; nothing is.

        Raises:
            NoEndpointError: there is no model, its API is not known, or its key is not set.

        """
        environ = os.environ if self._environ is None else self._environ
        model = asked.model or self._model or environ.get(JUDGE_MODEL_ENV)
        if not model:
            raise NoEndpointError(NO_MODEL)
        try:
            return endpoint_for(model, asked.options, environ)
        except EndpointError as error:
            raise NoEndpointError(str(error)) from error

    async def __call__(self, question: Question, turns: JudgeTurns) -> Reply:
        """Ask, wait and ask again where that can help, and return the reply."""
        from pytest_mst.providers.model import missing_extra

        try:
            endpoint = self.endpoint(question.asked)
        except NoEndpointError as error:
            return Unanswered(str(error))
        missing = missing_extra("a judge that asks a model")
        if missing is not None:
            return Unanswered(missing.reason)
        turns.endpoint = endpoint.shared_by
        spent = None if self._why_stopped is None else self._why_stopped()
        if spent is not None:
            return Unanswered(spent)
        reply = await _asked(endpoint, question, turns)
        return self._counted(reply, endpoint)

    def _counted(self, reply: Reply, endpoint: Endpoint) -> Reply:
        """Return a reply with what it cost, and tell that."""
        if reply.usage is None:
            return reply
        from pytest_mst.providers.price import priced

        usage = priced(reply.usage, endpoint.model, self._pricing, endpoint.api)
        if self._spent is not None:
            self._spent(usage)
        if isinstance(reply, Answered):
            return Answered(reply.reply, usage, reply.model)
        return Unanswered(reply.reason, reply.retryable, usage)


async def _asked(endpoint: Endpoint, question: Question, turns: JudgeTurns) -> Reply:
    from pytest_mst.providers.structured import AskSettings, UnfitAnswerError, ask

    settings = AskSettings(question.asked.temperature, question.asked.max_tokens)
    try:
        answer = await ask(
            endpoint,
            question.instructions,
            question.text,
            question.reply,
            settings=settings,
            turns=turns,
        )
    except ProviderError as error:
        return _not_answered(error.failure, Redactor([endpoint.key]))
    except InfrastructureError as error:
        return Unanswered(error.failure.reason)
    except UnfitAnswerError as error:
        way_out = "; give the judge a larger `maxTokens`" if error.truncated else ""
        return Unanswered(f"{error}{way_out}", retryable=not error.truncated, usage=error.usage)
    return Answered(answer.output, answer.usage, endpoint.model)


def _not_answered(failure: ProviderFailure, redactor: Redactor) -> Unanswered:
    says = f": {redactor.text(failure.says)[:_SAYS_CHARS]}" if failure.says else ""
    if failure.kind is FailureKind.CONTEXT:
        where = f"model {failure.model!r}, {failure.label}"
        reason = f"the trial does not fit the context of the judge's {where}; give it another model"
        return Unanswered(f"{reason}{says}", retryable=False)
    return Unanswered(f"{failure.reason}{says}", retryable=failure.kind not in _NO_HELP)
