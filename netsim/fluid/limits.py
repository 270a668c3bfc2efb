"""What max-min shares do not know, so that a run with it is refused, each by its key and with what to do instead."""

from collections.abc import Iterator

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.netsim.config.capture import CaptureConfig
from fabrictune.netsim.config.host import HostConfig
from fabrictune.netsim.config.nic import NicConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.path_choice import PathChoiceConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.config.transport import TransportConfig
from fabrictune.netsim.faults.timeline import FaultTimeline

NEXT_STEP = "leave it out, or take `engine: {name: packet, skip: exact}`, which has packets"
LOSSLESS = "none: at max-min shares no packet is lost"
IN_ORDER = "none: at max-min shares no packet goes before another"
FROM_HASHES = "hash: at max-min shares every transfer has one path"
NO_QUEUES = "none: at max-min shares there are no queues"
IN_HOSTS = "none: at max-min shares hosts take what arrives"


def require_shares(
    config: PacketConfig,
    *,
    faults: FaultTimeline,
    probe: ProbeConfig | None = None,
    capture: CaptureConfig | None = None,
) -> None:
    """Raise InputError for all things of a run that a fluid has no notion of, a mistake each."""
    mistakes = [
        Mistake(where=where, found=found, allowed=allowed, next_step=NEXT_STEP)
        for where, found, allowed in (*_beside(faults, probe, capture), *_unknown_settings(config))
    ]
    if mistakes:
        raise InputError(*mistakes)


def _beside(
    faults: FaultTimeline, probe: ProbeConfig | None, capture: CaptureConfig | None
) -> Iterator[tuple[str, str, str]]:
    if probe:
        yield "probe", "samples of queues and rates", NO_QUEUES
    if capture:
        yield "capture", "captured packets", "none: at max-min shares there are no packets"
    if faults.faults:
        yield "faults", f"{len(faults.faults)} faults", LOSSLESS


def _unknown_settings(config: PacketConfig) -> Iterator[tuple[str, str, str]]:
    """Yield the key, the value and what is allowed, of each setting that shares do not know."""
    transport, queues = config.transport, config.queues
    priorities = str([entry.priority for entry in queues.priorities])
    rules = (
        (config.path_choice.mode != PathChoiceConfig().mode, "path_choice.mode", config.path_choice.mode, FROM_HASHES),
        (bool(queues.priorities), "queues.priorities", priorities, IN_ORDER),
        (
            queues.acknowledgement_class == "data",
            "queues.acknowledgement_class",
            "data",
            "control: at max-min shares acknowledgements do not wait",
        ),
        (config.loss_fraction > 0, "loss", f"{config.loss_fraction:g}", LOSSLESS),
        (not config.pfc.enabled, "pfc.enabled", "false", "true: at max-min shares no packet is lost"),
        (config.host != HostConfig(), "host", "PCIe between NICs and memory", IN_HOSTS),
        (config.nic != NicConfig(), "nic", "NICs with settings of their own", IN_HOSTS),
        (
            transport.is_selective,
            "transport.reliability",
            transport.reliability,
            "go-back-n: at max-min shares no packet is lost",
        ),
        (transport.rnr != TransportConfig().rnr, "transport.rnr", "receives that run out", IN_HOSTS),
        (transport.credits != TransportConfig().credits, "transport.credits", "credits of receivers", IN_HOSTS),
    )
    return ((f"engine.{key}", found, allowed) for is_there, key, found, allowed in rules if is_there)
