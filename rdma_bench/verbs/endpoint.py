"""Queue pairs of one device through pyverbs: made, connected to another host's, used, and taken down.

All are reliable connections (RC). Each has a completion queue in common with the others, and writes go from one
registered buffer here to one there. Errors of the library become UnavailableError with the call that failed.

Source: IBTA 1.4, volume 1, 10.3 (states of a queue pair); rdma-core, ibv_modify_qp(3).
Left out: devices without RoCE (a path needs a GID here), and multicast, datagrams and atomics.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv6Address
from typing import Any, Self

from fabrictune.foundation.errors import InputError, Mistake, UnavailableError
from fabrictune.rdma_bench.verbs.diagnosis import diagnose, require_devices
from fabrictune.rdma_bench.verbs.ports import DevicePort

SUCCESS = 0
FIRST_PSN = 0x100
HOP_LIMIT = 64
MAX_QUEUE_PAIRS = 128
MAX_BUFFER_BYTES = 2**26
QUEUE_DEPTH = 128  # requests of one queue pair that may be on their way
MTU_CODES = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}


@dataclass(frozen=True, kw_only=True)
class ConnectionSpec:
    """Attributes of a queue pair that are set when it is connected."""

    timeout_exponent: int = 14
    retries: int = 7
    rnr_retries: int = 7
    rnr_timer_code: int = 12
    flow_label: int = 0  # 0: the driver makes one of the two queue-pair numbers
    traffic_class: int = 0
    mtu_bytes: int = 1024

    def __post_init__(self) -> None:
        highest = {
            "timeout_exponent": 31,
            "retries": 7,
            "rnr_retries": 7,
            "rnr_timer_code": 31,
            "flow_label": 2**20 - 1,
            "traffic_class": 255,
        }
        mistakes = [
            Mistake(where=name, found=f"{getattr(self, name)}", allowed=f"0 to {high}")
            for name, high in highest.items()
            if not 0 <= getattr(self, name) <= high
        ]
        if self.mtu_bytes not in MTU_CODES:
            mistakes.append(
                Mistake(where="mtu_bytes", found=f"{self.mtu_bytes}", allowed=", ".join(map(str, MTU_CODES)))
            )
        if mistakes:
            raise InputError(*mistakes)


@dataclass(frozen=True, kw_only=True)
class Address:
    """Address of an endpoint, as the other end needs it."""

    gid: str
    qpns: tuple[int, ...]
    buffer_address: int
    buffer_key: int

    def __post_init__(self) -> None:
        """Raise InputError for what no endpoint has: it comes over a network."""
        try:
            IPv6Address(self.gid)
        except AddressValueError as error:
            raise InputError(Mistake(where="gid", found=str(error), allowed="an address of IPv6")) from error
        for name, numbers, bits in (
            ("qpns", self.qpns, 24),
            ("buffer_address", (self.buffer_address,), 64),
            ("buffer_key", (self.buffer_key,), 32),
        ):
            if not all(0 <= number < 2**bits for number in numbers):
                raise InputError(Mistake(where=name, found=f"{numbers}", allowed=f"numbers of {bits} bits"))


@dataclass(frozen=True)
class Completion:
    """One request that has ended: `status` is the library's, 0 for success and 12 for retries exceeded."""

    queue_pair: int
    status: int


class VerbsEndpoint:
    """The queue pairs of a device, a buffer, and what they need; a context manager that frees them all."""

    def __init__(self, place: DevicePort, *, num_queue_pairs: int = 1, buffer_bytes: int = 2**16) -> None:
        _check_count("queue pairs", num_queue_pairs, MAX_QUEUE_PAIRS)
        _check_count("buffer_bytes", buffer_bytes, MAX_BUFFER_BYTES)
        require_devices(diagnose(), where=place.device)
        self.place = place
        self.buffer_bytes = buffer_bytes
        self._resources: list[Any] = []  # in the order in which they were made
        try:
            self._make(num_queue_pairs)
        except UnavailableError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free everything, the last that was made first."""
        while self._resources:
            self._resources.pop().close()

    def _make(self, num_queue_pairs: int) -> None:
        from pyverbs.cq import CQ
        from pyverbs.device import Context
        from pyverbs.mr import MR
        from pyverbs.pd import PD
        from pyverbs.qp import QP, QPCap, QPInitAttr

        self.enums = _load_enums()
        enums, place = self.enums, self.place
        with _explained(f"{place.device} port {place.port}"):
            context = self._keep(Context(name=place.device))
            domain = self._keep(PD(context))
            access = enums.IBV_ACCESS_LOCAL_WRITE | enums.IBV_ACCESS_REMOTE_WRITE
            self._buffer = self._keep(MR(domain, self.buffer_bytes, access))
            self._completions = self._keep(CQ(context, 2 * QUEUE_DEPTH * num_queue_pairs))
            self._gid = context.query_gid(place.port, place.gid.index)
            self._queue_pairs = []
            for _ in range(num_queue_pairs):
                settings = QPInitAttr(
                    qp_type=enums.IBV_QPT_RC,
                    scq=self._completions,
                    rcq=self._completions,
                    cap=QPCap(max_send_wr=QUEUE_DEPTH, max_recv_wr=QUEUE_DEPTH),
                    sq_sig_all=1,
                )
                self._queue_pairs.append(self._keep(QP(domain, settings)))
        self._index_by_qpn = {pair.qp_num: index for index, pair in enumerate(self._queue_pairs)}

    def _keep(self, resource: Any) -> Any:
        self._resources.append(resource)
        return resource

    @property
    def num_queue_pairs(self) -> int:
        """Number of queue pairs."""
        return len(self._queue_pairs)

    @property
    def address(self) -> Address:
        """Address for the other end."""
        return Address(
            gid=str(self._gid),
            qpns=tuple(self._index_by_qpn),
            buffer_address=self._buffer.buf,
            buffer_key=self._buffer.rkey,
        )

    def connect(self, peer: Address, spec: ConnectionSpec) -> None:
        """Connect each queue pair to the peer's of the same place, ready to send and to receive."""
        from pyverbs.addr import GID, AHAttr, GlobalRoute
        from pyverbs.qp import QPAttr

        _check_count("queue pairs of the peer", len(peer.qpns), self.num_queue_pairs, self.num_queue_pairs)
        self._peer = peer
        place, enums = self.place, self.enums
        route = GlobalRoute(
            dgid=GID(peer.gid),
            sgid_index=place.gid.index,
            hop_limit=HOP_LIMIT,
            flow_label=spec.flow_label,
            traffic_class=spec.traffic_class,
        )
        for pair, qpn in zip(self._queue_pairs, peer.qpns, strict=True):
            settings = QPAttr(port_num=place.port)
            settings.qp_access_flags = enums.IBV_ACCESS_REMOTE_WRITE
            settings.dest_qp_num = qpn
            settings.path_mtu = MTU_CODES[spec.mtu_bytes]
            settings.rq_psn = settings.sq_psn = FIRST_PSN
            settings.max_rd_atomic = settings.max_dest_rd_atomic = 1
            settings.min_rnr_timer = spec.rnr_timer_code
            settings.timeout = spec.timeout_exponent
            settings.retry_cnt = spec.retries
            settings.rnr_retry = spec.rnr_retries
            settings.ah_attr = AHAttr(port_num=place.port, is_global=1, gr=route)
            with _explained("connecting a queue pair"):
                pair.to_rts(settings)

    def post_write(self, queue_pair: int, num_bytes: int) -> None:
        """Ask for a write of the buffer's first bytes into the peer's."""
        from pyverbs.wr import SGE, SendWR

        part = SGE(self._buffer.buf, num_bytes, self._buffer.lkey)
        request = SendWR(opcode=self.enums.IBV_WR_RDMA_WRITE, num_sge=1, sg=[part])
        request.set_wr_rdma(self._peer.buffer_key, self._peer.buffer_address)
        self._post(queue_pair, request)

    def post_send(self, queue_pair: int, num_bytes: int) -> None:
        """Ask for a message, which is refused as long as the peer has posted no receive."""
        from pyverbs.wr import SGE, SendWR

        part = SGE(self._buffer.buf, num_bytes, self._buffer.lkey)
        self._post(queue_pair, SendWR(opcode=self.enums.IBV_WR_SEND, num_sge=1, sg=[part]))

    def _post(self, queue_pair: int, request: Any) -> None:
        with _explained("posting a request"):
            self._queue_pairs[queue_pair].post_send(request)

    def poll(self) -> Sequence[Completion]:
        """Return what has completed since the last call, in order."""
        number, completions = self._completions.poll(QUEUE_DEPTH)
        return (
            [Completion(self._index_by_qpn.get(completion.qp_num, 0), completion.status) for completion in completions]
            if number
            else []
        )

    def stop_answering(self) -> None:
        """Put all queue pairs into the error state: they drop what comes without a word, as a dead path does."""
        from pyverbs.qp import QPAttr

        for pair in self._queue_pairs:
            with _explained("stopping a queue pair"):
                pair.modify(QPAttr(qp_state=self.enums.IBV_QPS_ERR), self.enums.IBV_QP_STATE)


def _load_enums() -> Any:
    try:
        import pyverbs.enums as enums
    except ModuleNotFoundError:  # its name since rdma-core 50
        import pyverbs.libibverbs_enums as enums
    return enums


def _check_count(where: str, found: int, highest: int, lowest: int = 1) -> None:
    if not lowest <= found <= highest:
        raise InputError(Mistake(where=where, found=f"{found}", allowed=f"{lowest} to {highest}"))


@contextmanager
def _explained(call: str) -> Iterator[None]:
    """Turn the library's errors into ours."""
    from pyverbs.pyverbs_error import PyverbsError

    try:
        yield
    except PyverbsError as error:
        raise UnavailableError(
            Mistake(where=call, found=str(error), next_step="rdma link; ulimit -l; dmesg | tail")
        ) from error
