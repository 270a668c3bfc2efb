"""Nodes that agents of torchelastic keep: each agent runs an executor as its only worker.

The driver starts none of them, and an executor that has failed is started anew by its agent. Its name is that of the
agent's place (`GROUP_RANK`), so that it is the same node after a restart. What such a node runs ends with its executor,
and a generation's number keeps out what is left of one that nobody reaches: a node counts as ended as soon as that is
asked for.

Source: PyTorch 2, "torchrun (Elastic Launch)".

Left out: agents started from here; `torchrun` on each host, by hand or by a scheduler, is what they are for.
"""

from collections.abc import Collection, Mapping, Sequence


class AgentBackend:
    """The nodes of one job, which join by themselves."""

    def __init__(self) -> None:
        self._ended: dict[str, int] = {}

    def start(self, node: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Wait for the node's agent: its executor says hello."""
        self._ended.pop(node, None)

    def end(self, node: str) -> None:
        """Count the node as cut off; its agent starts it again."""
        self._ended[node] = 0

    def ended(self) -> Mapping[str, int]:
        """Return the nodes that were cut off."""
        return dict(self._ended)

    def living(self) -> Collection[str]:
        """Return no node: none is known before it joins."""
        return ()

    def close(self) -> None:
        """Leave executors to end by themselves, as the driver has told them."""
