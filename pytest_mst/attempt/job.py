"""One attempt to make: everything that is known of it before it begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_mst.attempt.judges import Judge
from pytest_mst.attempt.live_plan import LivePlan
from pytest_mst.clients.client import Client, ClientRequest, endpoint_of
from pytest_mst.clients.function import FunctionClient
from pytest_mst.domain.case import Case
from pytest_mst.domain.ending import InfrastructureFailure
from pytest_mst.domain.eval_config import ModelPrice
from pytest_mst.domain.identity import Identity, part_hash
from pytest_mst.domain.json_value import JsonObject
from pytest_mst.domain.placeholder import filled
from pytest_mst.domain.plan import tools_hash
from pytest_mst.domain.resumption import Decision, Step
from pytest_mst.domain.run import AttemptId
from pytest_mst.domain.write import ServerTools, WriteMode
from pytest_mst.grading.grader import Grader
from pytest_mst.proxy.upstream_spec import AttemptServer


@dataclass(frozen=True, slots=True)
class Again:
    """What a run that is taken up again makes of one attempt."""

    decision: Decision
    stamp: str
    """Names the folder of what is replaced."""
    before: str | None = None
    """When what is stored of the attempt began, by which it is told from what is made since."""
    modes: Mapping[str, WriteMode] | None = None
    """Of the servers when the run was started, by label; `None` where nobody knows."""
    direct: frozenset[str] | None = None
    """The labels of the servers that had no proxy in front then; `None` where nobody knows."""

    @property
    def stands(self) -> bool:
        """Whether the attempt is not made: what is stored of it is kept, or only graded again."""
        return self.decision.step is not Step.COLLECT


BODY = "body"
"""The grader that is the body of a Python case."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a case is put to: a variant's client and servers, ready to be opened."""

    variant: str
    client: Client
    model: str | None
    options: JsonObject
    input_template: str
    servers: Mapping[str, AttemptServer]
    tools: Mapping[str, ServerTools]
    modes: Mapping[str, WriteMode]
    definitions: Mapping[str, object]
    """The server definitions as they were written: no secret, no absolute path."""
    failure: InfrastructureFailure | None = None
    """Why no attempt can be made; each ends with this."""
    pricing: Mapping[str, ModelPrice] = field(default_factory=dict)
    """The eval's own prices, by model."""
    live: LivePlan | None = None
    """What surrounds its attempts, where one of its servers is live."""
    stopped: Target | None = None
    """The same with the writes of live servers stopped, where one of its servers is live; what
    the client reads there is seeded and taken away all the same."""
    definitions_key: str = field(init=False, default="")
    """Of the definitions, hashed."""
    tools_key: str = field(init=False, default="")
    """Of the tools that the servers list, hashed; empty where they are not known."""

    def __post_init__(self) -> None:
        """Work the hashes out once: tool lists are long, and the cases are many."""
        object.__setattr__(self, "definitions_key", part_hash(dict(self.definitions)))
        if self.tools and self.failure is None:
            listed = {one.label: tools_hash(one) for one in self.tools.values()}
            object.__setattr__(self, "tools_key", part_hash(listed))

    @classmethod
    def missing(cls, variant: str) -> Target:
        """Return what stands for a target that could not be made: no client, no server."""
        return cls(variant, FunctionClient(_no_client), None, {}, "{{input}}", {}, {}, {}, {})

    def for_case(self, case: Case) -> Target:
        """Return what a case is put to: only one whose outcome is checked may write for real."""
        return self if self.stopped is None or case.expected.outcome else self.stopped

    def options_for(self, case: Case) -> JsonObject:
        """Return `clientOptions`: the case's over the variant's over the eval's."""
        return {**self.options, **case.client_options}

    def model_for(self, case: Case) -> str | None:
        """Return the model: the case's over the variant's over the eval's."""
        return case.model or self.model

    @property
    def direct(self) -> frozenset[str]:
        """The labels of the servers that the client connects to itself."""
        return frozenset(label for label, server in self.servers.items() if server.direct)

    @property
    def tools_behind_proxy(self) -> Mapping[str, ServerTools]:
        """The tools of the servers whose calls a boundary sees, by label."""
        direct = self.direct
        if not direct:
            return self.tools
        return {label: tools for label, tools in self.tools.items() if label not in direct}

    @property
    def unguarded(self) -> bool:
        """Whether a server of this variant lets writes through that nobody can tell."""
        return WriteMode.UNGUARDED in self.modes.values()


async def _no_client(request: ClientRequest) -> None:
    """Stand in for a client that is never run."""


@dataclass(frozen=True, slots=True)
class AttemptJob:
    """One attempt to make."""

    id: AttemptId
    locator: str
    case: Case
    dataset: str
    target: Target
    timeout_s: float
    """Our deadline."""
    graders: tuple[Grader, ...]
    """Those that are code."""
    identity: Identity
    """What it is an attempt of."""
    judges: tuple[Judge, ...] = ()
    """Asked once the attempt has ended and is stored."""
    declared_writes: bool = False
    """The case is marked as making writes, without saying which."""
    has_body: bool = False
    """A test body grades too, once the attempt has ended."""
    again: Again | None = None
    """What a run that is taken up again makes of it; `None` in a run's first session."""

    @property
    def trial_id(self) -> str:
        """What `{{trial.id}}` stands for: unique to the attempt, letters and digits only.

        One that is collected anew has another: what the earlier go wrote may still be there.
        """
        unique = "mst" + self.locator.removeprefix("@")
        if self.again is None or self.again.stands:
            return unique
        return f"{unique}x{part_hash(self.again.stamp)[:6]}"

    @property
    def input(self) -> str:
        """The input as the client is given it."""
        text = self.target.input_template.replace("{{input}}", self.case.input)
        return filled(text, self.trial_id)

    @property
    def options(self) -> JsonObject:
        """`clientOptions`: the case's over the variant's over the eval's."""
        return self.target.options_for(self.case)

    @property
    def model(self) -> str | None:
        """The model: the case's over the variant's over the eval's."""
        return self.target.model_for(self.case)

    @property
    def endpoint(self) -> str:
        """What stands for the API that the client asks: those who ask the same wait together."""
        return endpoint_of(self.target.client, self.options, self.model)
