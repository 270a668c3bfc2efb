"""Whether exact skip looks for what repeats: a search in vain must be little of a run, and threads have no search."""

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.netsim.config.packet import PacketConfig

FEWEST_PACKET_HOPS = 50_000  # some 4 ms; a shorter run is over before a search has paid


def packet_hops(packets_Q: FloatArray, num_hops_Q: IntArray, ack_every_packets: int) -> float:
    """Return the packets over links of a run in which each is sent once, with its acknowledgement."""
    return float((packets_Q * num_hops_Q).sum()) * (1 + 1 / ack_every_packets)


def not_searched(config: PacketConfig, num_packet_hops: float) -> str:
    """Return why a run under exact skip looks for nothing that repeats; "" where it does, and under any other skip."""
    if config.skip != "exact":
        return ""
    if config.threads > 1:
        return "threads that share a run do not look for what repeats"
    return "too short to look for what repeats" if num_packet_hops < FEWEST_PACKET_HOPS else ""
