"""Two workers and the queue pairs between their devices: opened together, connected, and closed together."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any

from fabrictune.foundation.errors import FabrictuneError
from fabrictune.rdma_bench.measurement.workers import RdmaWorker
from fabrictune.rdma_bench.verbs.endpoint import ConnectionSpec


@dataclass(frozen=True, kw_only=True)
class PortChoice:
    """A port of a host, as its user names it; what is left out is chosen there."""

    device: str = ""
    port: int = 1
    gid_index: int = -1


@dataclass(frozen=True, kw_only=True)
class WorkerPair:
    """The workers of one measurement."""

    sender: RdmaWorker
    receiver: RdmaWorker
    sender_place: PortChoice = PortChoice()
    receiver_place: PortChoice = PortChoice()

    @contextmanager
    def connected(
        self, spec: ConnectionSpec, *, num_queue_pairs: int = 1, buffer_bytes: int = 2**16
    ) -> Iterator[Mapping[str, Any]]:
        """Give the device and queue pairs of each end, `sender` and `receiver`; both are closed with the block."""
        size = {"num_queue_pairs": num_queue_pairs, "buffer_bytes": buffer_bytes}
        try:
            near = self.sender.ask("open", role="sender", **asdict(self.sender_place), **size)
            far = self.receiver.ask("open", role="receiver", **asdict(self.receiver_place), **size)
            # The receiver first: a sender may begin as soon as it is connected.
            self.receiver.ask("connect", peer=near["address"], spec=asdict(spec))
            self.sender.ask("connect", peer=far["address"], spec=asdict(spec))
            ends = {"sender": near, "receiver": far}
            yield {name: {**end, "qpns": end["address"]["qpns"]} for name, end in ends.items()}
        finally:
            self._close()

    @contextmanager
    def placed(self) -> Iterator[str]:
        """Give the receiver's IPv4 address on its port, with both ports kept for this block."""
        try:
            self.sender.ask("place", role="sender", **asdict(self.sender_place))
            yield str(self.receiver.ask("place", role="receiver", **asdict(self.receiver_place))["ipv4"])
        finally:
            self._close()

    def _close(self) -> None:
        for worker in (self.receiver, self.sender):
            if not worker.is_waiting:  # else it frees everything once its connection ends
                with suppress(FabrictuneError):  # gone, and with it what it held
                    worker.ask("close")
