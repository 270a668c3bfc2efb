"""Which node of a generation sends its checkpoints in memory to which, and where nodes may take what they lack."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fabrictune.trainer_probe.operation.driver_state import Generation, JobSettings, Node
from fabrictune.trainer_probe.operation.peers import Peer, Place, peers_of


def plan_copies(
    generation: Generation, nodes: Mapping[str, Node], settings: JobSettings
) -> Mapping[str, Mapping[str, Any]]:
    """Return what each node of a generation is told of copies: its peer's address, and those of all that may hold some.

    Without saves in memory there are none.
    """
    peers = _peers(generation, nodes, settings)
    serving = {name: node.copies for name, node in nodes.items() if node.life == "joined" and node.copies is not None}
    return {
        name: {
            "peer": serving.get(peers[name].node) if peers else None,
            "holders": [address for other, address in serving.items() if peers and other != name],
        }
        for name in generation.ranks_of
    }


def peer_values(generation: Generation, nodes: Mapping[str, Node], settings: JobSettings) -> Mapping[str, Any]:
    """Return the peer of each node, and what it lacks, as values of an event."""
    return {name: asdict(peer) for name, peer in _peers(generation, nodes, settings).items()}


def _peers(generation: Generation, nodes: Mapping[str, Node], settings: JobSettings) -> Mapping[str, Peer]:
    assert generation.task is not None, "of a generation"
    if not generation.task.saves.memory_every:
        return {}
    coordinates, tor_sets = settings.layout.coordinates, settings.tor_sets
    return peers_of(
        [
            Place(
                node=name,
                tor_set=tor_sets.get(name) or tor_sets.get(nodes[name].host, ""),
                replicas=tuple(sorted({int(coordinates(rank)["dp"]) for rank in ranks})),
            )
            for name, ranks in generation.ranks_of.items()
        ]
    )
