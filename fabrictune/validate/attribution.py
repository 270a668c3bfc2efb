"""Attribution of a measured collective's time to parts that add up to it, each with a test that would confirm it.

The model's parts come first, in the order in which they cannot be avoided: what the NICs need, what the algorithm's
rounds add, what flows lose to one another, of which more queue pairs would give some back. What the measurement shows
of itself comes next: ranks that came late, and what a call costs whatever its size. What is left is *not the network*,
or not the network that was modelled.

No part is larger than what is left for it, so that all of them add up to the measured time, and a collective faster
than its model has less of the model's last parts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fabrictune.validate.collective_model import MANY_QPS, Modelled


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A cause of delay."""

    name: str
    what: str
    test: str  # an experiment that would confirm it


CAUSES: Mapping[str, Cause] = {
    cause.name: cause
    for cause in (
        Cause(
            name="nic",
            what="the busiest NIC's bytes, with headers, at its line rate",
            test="ib_write_bw between two hosts: a lower rate there is the NIC's, its PCIe slot's or its cable's",
        ),
        Cause(
            name="rounds",
            what="messages that wait for one another, over the cables and switches of a clean fabric",
            test="an algorithm of fewer rounds at this size (NCCL_ALGO=Tree), or slices; `coll model` prices each",
        ),
        Cause(
            name="queue_pairs",
            what=f"flows that collide, and would not with {MANY_QPS} queue pairs a connection",
            test="NCCL_IB_QPS_PER_CONNECTION=4 or 8, NCCL_IB_SPLIT_DATA_ON_QPS=1, and measure again",
        ),
        Cause(
            name="collisions",
            what="flows that share a link however many queue pairs they have",
            test="the same ranks under one ToR set; `ecmp explain` names the links, `ecmp plan` a better placement",
        ),
        Cause(
            name="late_ranks",
            what="the first rank's wait for the last one to come (known of our own bench alone)",
            test="table `ranks` of the measurement: who is late, and what else its processor or GPU does",
        ),
        Cause(
            name="call",
            what="what a call costs whatever its size, beyond the rounds above: software, launches, protocol",
            test="8 B at the same ranks: it stays there without load; then fewer ranks: does it grow with the rounds?",
        ),
        Cause(
            name="not_the_network",
            what="what grows with the size, and no link, collision or round of the model explains",
            test="ib_write_bw at line rate at the same time as this stays slow; then GPU, PCIe, NCCL's channels "
            "and protocol, or traffic that the scenario leaves out",
        ),
    )
}


@dataclass(frozen=True, kw_only=True)
class Attribution:
    """The parts of one measured time, in picoseconds, by the names of CAUSES."""

    measured_ps: float
    parts_ps: Mapping[str, float]

    @property
    def largest_avoidable(self) -> str:
        """Return the cause of most of the time that the NIC does not need."""
        return max((name for name in self.parts_ps if name != "nic"), key=lambda name: self.parts_ps[name])


def attribute(measured_ps: float, modelled: Modelled, *, alpha_ps: float, late_ps: float = 0.0) -> Attribution:
    """Return the parts of a time.

    `alpha_ps` is what the line through all measured sizes says of an empty one, 0 where there is none; `late_ps` the
    mean wait for the last rank.
    """
    collided_ps = modelled.fair_ps - modelled.bound_ps
    more_qps_give_back_ps = modelled.fair_ps - modelled.many_qps_ps
    rounds_ps = modelled.bound_ps - modelled.line_ps
    causes = (
        ("nic", modelled.line_ps),
        ("rounds", rounds_ps),
        ("queue_pairs", more_qps_give_back_ps),
        ("collisions", collided_ps - more_qps_give_back_ps),
        ("late_ranks", late_ps),
        ("call", alpha_ps - rounds_ps - late_ps),
        ("not_the_network", measured_ps),
    )
    return Attribution(measured_ps=measured_ps, parts_ps=dict(_shared_out(measured_ps, causes)))


def _shared_out(total_ps: float, causes: Sequence[tuple[str, float]]) -> Iterator[tuple[str, float]]:
    """Yield what each gets, in turn, as long as there is something left."""
    for name, wanted_ps in causes:
        part_ps = min(total_ps, max(0.0, wanted_ps))
        total_ps -= part_ps
        yield name, part_ps
