"""Schema of a scenario file: each field is a key, and `binding` derives the check of the file.

A scenario is data: a question, the fabric and the traffic it is asked of, and the bounds of a good answer. Fabrics,
workloads, laws and the engine's settings are defined in their own rooms and only chosen from here.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

from pydantic import Field

from fabrictune.foundation.documents import Document, Key, key_path
from fabrictune.foundation.errors import InputError, Mistake, ScenarioError, require_one_of
from fabrictune.foundation.settings.binding import NOT_A_KEY, Choice, Chosen
from fabrictune.foundation.settings.folder_names import FolderName
from fabrictune.netsim.config.capture import CaptureConfig
from fabrictune.netsim.config.faults import FAULTS, KNOWN_FAULTS
from fabrictune.netsim.config.fluid import FluidConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.config.settings import LONGEST_WAIT_NS, require
from fabrictune.netsim.engines import DEFAULT_ENGINE, ENGINES
from fabrictune.scenario.adapters import ADAPTER_CHOICE, STANDARD_ADAPTER
from fabrictune.scenario.expectations import Expectation, Measure
from fabrictune.scenario.fabrics import FABRIC_CHOICE
from fabrictune.scenario.laws import LAW_CHOICE, NO_LAW
from fabrictune.scenario.mixture import TRAFFIC, MixSpec
from fabrictune.scenario.switch_settings.files import SwitchFiles
from fabrictune.topology.hashing import HashSpec

MAX_SEED = 2**63 - 1


TRAFFIC_CHOICE = Choice(
    "workload", {name: workload.spec for name, workload in TRAFFIC.items()}, known_as={"jobs": "mix"}
)
FAULT_CHOICE = Choice("fault", FAULTS, known_as=KNOWN_FAULTS)
ENGINE_CHOICE = Choice(
    "name",
    {name: engine.spec for name, engine in ENGINES.items()},
    from_text=lambda name: {"name": name},
    default=DEFAULT_ENGINE,
)
STANDARD_ENGINE = Chosen(name=DEFAULT_ENGINE, spec=ENGINES[DEFAULT_ENGINE].spec())

Changes = dict[str, Any]  # key path, as `fabric.num_hosts`, and the value that the file would have there


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """A variant of the scenario: other settings, or failed parts."""

    name: str = field(metadata={"help": "of the row"})
    change: Changes = field(default_factory=dict, metadata={"help": "key paths and their values"})
    fail: tuple[str, ...] = field(default=(), metadata={"help": "switches, and links by a port: agg0-3, tor0:up1"})


@dataclass(frozen=True, kw_only=True)
class Factor:
    """A factor with two levels, crossed with the other factors."""

    name: str = field(metadata={"help": "of the factor"})
    low: Changes = field(metadata={"help": "key paths and their values without it"})
    high: Changes = field(metadata={"help": "key paths and their values with it"})


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A question about a fabric, complete enough to be answered twice with the same result."""

    name: FolderName = field(metadata={"help": "of the question, and of its record"})
    question: str = field(default="", metadata={"help": "question that the run answers; the report shows it"})
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] = field(
        default=0, metadata={"help": "of everything that is drawn at random"}
    )
    fabric: Annotated[Chosen, FABRIC_CHOICE] = field(metadata={"help": "hosts, switches and links"})
    switches: SwitchFiles | None = field(
        default=None, metadata={"help": "files of the switches' own settings, for the changes that `sim sweep` prints"}
    )
    routing: HashSpec = field(default_factory=HashSpec, metadata={"help": "how switches choose among equal-cost ports"})
    traffic: Annotated[Chosen, TRAFFIC_CHOICE] = field(metadata={"help": "what is sent"})
    source_ports: Path | None = field(
        default=None, metadata={"help": "file of the queue pairs' UDP source ports: what `ecmp plan` writes"}
    )
    law: Annotated[Chosen, LAW_CHOICE] = field(
        default=NO_LAW, metadata={"help": "congestion control; `law: dcqcn` is short for a name alone"}
    )
    adapter: Annotated[Chosen, ADAPTER_CHOICE] = field(
        default=STANDARD_ADAPTER,
        metadata={"help": "whose retransmission timers; `adapter: connectx-6` is short for a name alone"},
    )
    engine: Annotated[Chosen, ENGINE_CHOICE] = field(
        default=STANDARD_ENGINE,
        metadata={"help": "what simulates it, with its settings; `engine: packet` is short for a name alone"},
    )
    fold: Literal["rails"] | None = field(
        default=None,
        metadata={"help": "rails: simulate one rail of a job for all, where that is proven right, and say so"},
    )
    probe: ProbeConfig | None = field(default=None, metadata={"help": "samples of queues over time"})
    capture: CaptureConfig | None = field(default=None, metadata={"help": "packets of some flows, as a pcap"})
    faults: tuple[Annotated[Chosen, FAULT_CHOICE], ...] = field(
        default=(), metadata={"help": "what goes wrong in the engine, and when"}
    )
    convergence_delay_ns: int | None = field(
        default=None,
        metadata={"help": "from a failure or repair until paths take notice of it; without it they never do"},
    )
    expect: tuple[Expectation, ...] = field(default=(), metadata={"help": "bounds of a good answer"})
    whatif: tuple[WhatIf, ...] = field(default=(), metadata={"help": "variants that `ecmp whatif` compares"})
    factors: tuple[Factor, ...] = field(default=(), metadata={"help": "what `ecmp factorial` crosses"})
    document: Document | None = field(default=None, repr=False, compare=False, metadata=NOT_A_KEY)
    trust_code: bool = field(default=False, repr=False, compare=False, metadata=NOT_A_KEY)  # the user's leave
    notes: tuple[str, ...] = field(default=(), repr=False, compare=False, metadata=NOT_A_KEY)  # keys without effect

    def __post_init__(self) -> None:
        delay_ns = self.convergence_delay_ns
        is_right = delay_ns is None or 1 <= delay_ns <= LONGEST_WAIT_NS
        require(is_right, "convergence_delay", f"{delay_ns} ns", f"1 to {LONGEST_WAIT_NS} ns")
        self.require_parts(self.expect, where="expect")

    def require_parts(self, measures: Iterable[Measure], *, where: str) -> None:
        """Raise InputError for a measure of a part that the traffic does not have."""
        spec = self.traffic.spec
        parts = tuple(part.name for part in spec.parts) if isinstance(spec, MixSpec) else ()
        for part in (measure.part for measure in measures if measure.part is not None):
            require_one_of(part, parts, where=where, what="part of the traffic", error=InputError)

    def packet_config(self) -> PacketConfig:
        """Return the packet engine's settings; raises ScenarioError where another engine is chosen."""
        if isinstance(self.engine.spec, FluidConfig):
            self._refuse_engine()
        return self.wire_config()

    def wire_config(self) -> PacketConfig:
        """Return what packets are on the wire, and settings beside it; raises ScenarioError for engines without it."""
        if not isinstance(self.engine.spec, PacketConfig):
            self._refuse_engine()
        return self.engine.spec

    def _refuse_engine(self) -> NoReturn:
        found, step = f"the engine {self.engine.name!r}", "this question is for the packet engine"
        raise ScenarioError(Mistake(where=self.where("engine"), found=found, allowed="packet", next_step=step))

    @property
    def headline(self) -> str:
        """The name and the question, if any, for people."""
        return f"{self.name}: {self.question.strip()}" if self.question else self.name

    def where(self, *keys: Key) -> str:
        """Return the place of a key for a Mistake: with file and line where the scenario came from a file."""
        return self.document.where(*keys) if self.document else key_path(keys)
