"""What happens to the coordinator, and what it wants done.

Events go into ``State.handle``; effects come out, to be carried out once what the event changed is durable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tocsin.coordinator.choices import BalancingChoice
from tocsin.coordinator.moves import Expected
from tocsin.coordinator.plans import PlanKind
from tocsin.policies.base import Point
from tocsin.protocol.coordination import Instruction, Registration, Report
from tocsin.protocol.messages import Wanted

# --- events ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BrokerRegistered:
    name: str
    registration: Registration


@dataclass(frozen=True, slots=True)
class BrokerReported:
    name: str
    report: Report


@dataclass(frozen=True, slots=True)
class BrokerRefused:
    """A connection to the broker's address was refused: nobody listens there."""

    name: str


@dataclass(frozen=True, slots=True)
class BrokerDetached:
    """The data cluster holds nothing of the dead broker any more."""

    name: str


@dataclass(frozen=True, slots=True)
class BrokerDistrusted:
    """The broker reports, but does not take its instructions: more of them wait than are kept."""

    name: str


@dataclass(frozen=True, slots=True)
class DrainAsked:
    name: str


@dataclass(frozen=True, slots=True)
class BrokerRemoved:
    """Somebody says that this broker is gone for good."""

    name: str


@dataclass(frozen=True, slots=True)
class PlacementAsked:
    user: str
    location: Point | None = None
    latencies_ms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SubscriptionKept:
    """``by`` is the broker that says so, if it was one."""

    user: str
    wanted: Wanted
    by: str | None = None


@dataclass(frozen=True, slots=True)
class SubscriptionEnded:
    user: str
    id: str
    by: str | None = None


@dataclass(frozen=True, slots=True)
class UserRemoved:
    user: str


@dataclass(frozen=True, slots=True)
class WantedMove:
    """With ``source``, which is where whoever planned saw the user: only if it is still there, and not on a move."""

    user: str
    to: str
    reason: str
    source: str | None = None
    expected: Expected | None = None


@dataclass(frozen=True, slots=True)
class PlanProposed:
    moves: Sequence[WantedMove]
    cause: str
    kind: PlanKind = PlanKind.ASKED


@dataclass(frozen=True, slots=True)
class PolicyChosen:
    """``configured`` is the policy in the configuration: when that changes, the choice is forgotten."""

    name: str
    options: Mapping[str, str]
    configured: str


@dataclass(frozen=True, slots=True)
class BalancingChosen:
    choice: BalancingChoice
    configured: str


@dataclass(frozen=True, slots=True)
class Ticked:
    """``elapsed_s`` have passed since the last tick, however long the machine kept us waiting."""

    elapsed_s: float


Event = (
    BrokerRegistered | BrokerReported | BrokerRefused | BrokerDetached | BrokerDistrusted | DrainAsked | BrokerRemoved
    | PlacementAsked | SubscriptionKept | SubscriptionEnded | UserRemoved | PlanProposed | PolicyChosen
    | BalancingChosen | Ticked
)  # fmt: skip

# --- effects -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Restart:
    """Forget what waits for ``broker``: this life of it begins with what follows."""

    broker: str
    incarnation: str


@dataclass(frozen=True, slots=True)
class Forget:
    """Forget what waits for ``broker``, which has ended."""

    broker: str


@dataclass(frozen=True, slots=True)
class Tell:
    """An instruction for ``broker``. A ``Send`` gets its ticket when it is handed over."""

    broker: str
    instruction: Instruction


@dataclass(frozen=True, slots=True)
class Detach:
    """Remove everything of the dead ``broker`` at the data cluster, then say BrokerDetached."""

    broker: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Nothing was heard of ``broker``: try whether anyone listens at its address."""

    broker: str
    url: str


@dataclass(frozen=True, slots=True)
class Say:
    """Something for the log."""

    text: str
    is_warning: bool = False


Effect = Restart | Forget | Tell | Detach | Ask | Say
