"""Placement: which nodes a generation runs on, and which ranks on each."""

from collections.abc import Collection, Mapping, Sequence


def choose_nodes(
    ready: Collection[str], earlier: Sequence[str], avoided: Collection[str], num_needed: int
) -> tuple[str, ...] | None:
    """Return the nodes of the next generation, None where too few are ready.

    Nodes that had ranks before keep their places, others fill the gaps; avoided ones only where there is no other.
    """
    chosen: list[str | None] = [
        node if node in ready and node not in avoided else None for node in earlier[:num_needed]
    ]
    chosen += [None] * (num_needed - len(chosen))
    others = sorted((node for node in ready if node not in chosen), key=lambda node: (node in avoided, node))
    for place, node in enumerate(chosen):
        if node is None:
            if not others:
                return None
            chosen[place] = others.pop(0)
    return tuple(node for node in chosen if node is not None)


def place_ranks(nodes: Sequence[str], num_ranks: int, num_slots: int) -> Mapping[str, tuple[int, ...]]:
    """Return the ranks of each node: blocks of as many as it has slots."""
    return {
        node: tuple(range(first, min(first + num_slots, num_ranks)))
        for node, first in zip(nodes, range(0, num_ranks, num_slots), strict=True)
    }
