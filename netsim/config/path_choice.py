"""Configuration of path choice among ports of equal cost.

`hash` follows the paths that topology has computed, one for each queue pair and direction. The others choose at every
switch, as packets come:

- `spray`: every packet anew, at random or in turn.
- `flowlet`: as the packet before it, unless the queue pair was silent at this switch for the gap or longer.
- `adaptive`: every packet to the shortest data queue; queues may be compared in coarse steps, as switches do.
- `ars`: the port of the best quality by averaged loads, for each flowlet or packet, as SONiC's ARS.
- `entropy`: by a value that the sender gives every packet, a hash of flow, switch and value; the sender takes it at
  random, or by REPS: again over what was acknowledged without a mark.
- `weighted`: once for each queue pair and switch, by chances in proportion to weights; an ideal hash.

All but `hash` and `weighted` reorder packets.

Source: Vanini et al., "Let It Flow: Resilient Asymmetric Load Balancing with Flowlet Switching", NSDI 2017 (gap of
500 us, random port); Alizadeh et al., "CONGA", SIGCOMM 2014; Zhou et al., "WCMP", EuroSys 2014; Bonato et al., "REPS",
arXiv 2407.21625; Ultra Ethernet Specification 1.0, 3.6.5.2 for the number of values (64 to 256). REPS stays frozen for
the 10 ms of the Ultra Ethernet Consortium's htsim model.
"""

from dataclasses import dataclass, field
from typing import Literal

from fabrictune.netsim.config.adaptive_routing import ArsConfig
from fabrictune.netsim.config.settings import LONGEST_WAIT_NS, MAX_BUFFER_BYTES, require, setting

MAX_QUEUE_LEVELS = 2**30
MAX_ENTROPY_VALUES = 2**16
REORDERING_MODES = ("spray", "flowlet", "adaptive", "ars", "entropy")


@dataclass(frozen=True, kw_only=True)
class PathChoiceConfig:
    """Choice of switches among equal-cost ports; the port through which a host sends stays that of the hash path."""

    mode: Literal["hash", "spray", "flowlet", "adaptive", "ars", "weighted", "entropy"] = setting(
        "hash", "hash, spray, flowlet, adaptive, ars, weighted or entropy"
    )
    ars: ArsConfig = field(default=ArsConfig(), metadata={"help": "ars: loads, bands and flowlets"})
    spray: Literal["random", "round-robin"] = setting("random", "spray: the order of ports")
    gap_ns: int = setting(500_000, "flowlet: silence after which a queue pair may change its port")
    flowlet_port: Literal["random", "least-queue"] = setting("random", "flowlet: which port a new one takes")
    ties: Literal["random", "first"] = setting("random", "least queue, ars: which of equally good ports")
    queue_step_bytes: int = setting(1, "least queue: queues within one step of this count as equally short")
    queue_levels: int | None = setting(
        None, "least queue: number of steps that are distinguished, longer queues counting as the last; by default all"
    )
    weights: Literal["rate", "links"] = setting(
        "rate", "weighted: by the port's rate, or by the number of links with which the next switch leads on"
    )
    entropy: Literal["random", "reps"] = setting("random", "entropy: which value a packet has")
    entropy_values: int = setting(64, "entropy: how many values a queue pair has")
    freeze_ns: int = setting(10_000_000, "entropy, reps: how long values are reused after a timeout")
    acknowledgements: Literal["hash", "same"] = setting(
        "hash", "whether acknowledgements and notifications keep their hash path or choose as data do"
    )

    def __post_init__(self) -> None:
        is_gap = 1 <= self.gap_ns <= LONGEST_WAIT_NS
        require(is_gap, "path_choice.gap", f"{self.gap_ns} ns", f"1 to {LONGEST_WAIT_NS} ns")
        is_step = 1 <= self.queue_step_bytes <= MAX_BUFFER_BYTES
        require(is_step, "path_choice.queue_step", f"{self.queue_step_bytes} B", f"1 to {MAX_BUFFER_BYTES} B")
        is_value = 1 <= self.entropy_values <= MAX_ENTROPY_VALUES
        found, allowed = f"{self.entropy_values}", f"1 to {MAX_ENTROPY_VALUES}"
        require(is_value, "path_choice.entropy_values", found, allowed)
        is_wait = 0 <= self.freeze_ns <= LONGEST_WAIT_NS
        require(is_wait, "path_choice.freeze", f"{self.freeze_ns} ns", f"0 to {LONGEST_WAIT_NS} ns")
        is_level = self.queue_levels is None or 2 <= self.queue_levels <= MAX_QUEUE_LEVELS
        require(is_level, "path_choice.queue_levels", f"{self.queue_levels}", f"2 to {MAX_QUEUE_LEVELS}")
