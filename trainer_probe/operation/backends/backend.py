"""What the driver asks of a backend."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol


class Backend(Protocol):
    """Starts and ends the nodes of one job. A driver that is started again makes a new one."""

    def start(self, node: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start a node's executor by a command.

        Raises UnavailableError where that cannot be now, and InputError where it never can.
        """

    def end(self, node: str) -> None:
        """Return when a node's executor and all its processes are gone, or the node is cut off for good.

        Raises UnavailableError where neither is known.
        """

    def ended(self) -> Mapping[str, int]:
        """Return the exit codes of nodes that have ended since they were started; -1 where it is not known."""

    def living(self) -> Collection[str]:
        """Return the nodes that an earlier driver has started and that have not ended."""

    def close(self) -> None:
        """End all nodes, and what the backend holds."""
