"""What max-min shares do not know, so that a run with it is refused."""

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


def require_shares(
    config: PacketConfig, *, probe: ProbeConfig | None, capture: CaptureConfig | None, faults: FaultTimeline
) -> None:
    """Raise InputError for each thing of a run that a fluid has no notion of."""
    beside = {"probe": probe, "capture": capture, "faults": faults.faults}
    found = [*(name for name, value in beside.items() if value), *_unknown_settings(config)]
    if found:
        raise InputError(
            Mistake(
                where="engine.skip",
                found=f"fluid, with {' and '.join(found)}",
                allowed="fluid only where every transfer has its path, no packet is lost and no queue comes first",
                next_step="leave them out, or take skip: exact",
            )
        )


def _unknown_settings(config: PacketConfig) -> Iterator[str]:
    selective = config.transport.is_selective
    rules = {
        "engine.path_choice": config.path_choice.mode != PathChoiceConfig().mode,
        "engine.queues.priorities": bool(config.queues.priorities),
        "engine.queues.acknowledgement_class: data": config.queues.acknowledgement_class == "data",
        "engine.loss": config.loss_fraction > 0,
        "engine.pfc.enabled: false": not config.pfc.enabled,
        "engine.host": config.host != HostConfig(),
        "engine.nic": config.nic != NicConfig(),
        "engine.transport.reliability: selective-repeat": selective,
        "engine.transport.rnr": config.transport.rnr != TransportConfig().rnr,
        "engine.transport.credits": config.transport.credits != TransportConfig().credits,
    }
    return (name for name, is_there in rules.items() if is_there)
