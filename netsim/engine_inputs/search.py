"""Whether a run is long enough for exact skip to look for what repeats: a search in vain must be little of it."""

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.netsim.config.packet import PacketConfig

FEWEST_PACKET_HOPS = 50_000  # some 4 ms; a shorter run is over before a search has paid


def packet_hops(packets_Q: FloatArray, num_hops_Q: IntArray, ack_every_packets: int) -> float:
    """Return the packets over links of a run in which each is sent once, with its acknowledgement."""
    return float((packets_Q * num_hops_Q).sum()) * (1 + 1 / ack_every_packets)


def takes_repeats(config: PacketConfig, num_packet_hops: float) -> bool:
    """Return whether the engine with skip is to run; under exact skip not where the run is over too soon."""
    return config.skip != "off" and (config.skip != "exact" or num_packet_hops >= FEWEST_PACKET_HOPS)
