"""Session of a worker for one measurement: request by request, on one connection, and then everything is freed.

A session holds at most one endpoint. It keeps the device's port for itself (as a sender, or as a receiver), so that two
measurements at once do not spoil each other. When the connection ends, however it does, the path is healed, the queue
pairs are gone, and the port is free.
"""

import platform
import socket
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from fabrictune.foundation.errors import FabrictuneError, InputError, Mistake, UnavailableError, require_one_of
from fabrictune.foundation.time_limits import scaled
from fabrictune.rdma_bench.verbs.channel import ChannelError, has_ended, receive_message, send_message
from fabrictune.rdma_bench.verbs.counters import read_counters
from fabrictune.rdma_bench.verbs.diagnosis import diagnose, require_devices
from fabrictune.rdma_bench.verbs.endpoint import Address, ConnectionSpec, VerbsEndpoint
from fabrictune.rdma_bench.verbs.path_cut import Cutter
from fabrictune.rdma_bench.verbs.perftest import PerftestSpec, run_perftest
from fabrictune.rdma_bench.verbs.poll import polling
from fabrictune.rdma_bench.verbs.ports import DevicePort, find_device_port
from fabrictune.rdma_bench.verbs.requests import parse_spec
from fabrictune.rdma_bench.verbs.transfers import TransferSpec, measure_bandwidth, measure_latency
from fabrictune.rdma_bench.verbs.trials import MAX_LIMIT_S, TrialSpec, run_trial

LONGEST_CUT_S = 600.0
LONGEST_CUT_SILENCE_S = 2 * MAX_LIMIT_S  # between two requests while the path is cut
LONGEST_SILENCE_S = 24 * 3600.0  # otherwise: a matrix of many hosts keeps each waiting for its turn
HEAL_PAUSE_S = 0.001


@dataclass(frozen=True, kw_only=True)
class PlaceSpec:
    """Port to use."""

    role: str
    device: str = ""
    port: int = 1
    gid_index: int = -1  # -1: the first of RoCE v2 on IPv4

    def __post_init__(self) -> None:
        require_one_of(self.role, ROLES, where="role", what="role", error=InputError)


@dataclass(frozen=True, kw_only=True)
class OpenSpec:
    """Queue pairs to make on it."""

    num_queue_pairs: int = 1
    buffer_bytes: int = 65536


ROLES = ("sender", "receiver")
SIZES = ("num_queue_pairs", "buffer_bytes")


@dataclass(frozen=True, kw_only=True)
class CutSpec:
    """How long the session goes on without another request while the path is cut."""

    silence_s: float = LONGEST_CUT_S

    def __post_init__(self) -> None:
        if not 0 < self.silence_s <= LONGEST_CUT_SILENCE_S:
            allowed = f"above 0, to {LONGEST_CUT_SILENCE_S:.0f}"
            raise InputError(Mistake(where="cut.silence_s", found=f"{self.silence_s}", allowed=allowed))


@dataclass(frozen=True, kw_only=True)
class HealSpec:
    """When the path is to be alive again."""

    after_s: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.after_s <= LONGEST_CUT_S:
            raise InputError(
                Mistake(where="heal.after_s", found=f"{self.after_s}", allowed=f"0 to {LONGEST_CUT_S:.0f}")
            )


class Session:
    """The requests of one connection, and what they hold."""

    def __init__(self, connection: socket.socket, cutter: Cutter) -> None:
        self._connection = connection
        self._cutter = cutter
        self._cut_silence_s = LONGEST_CUT_S
        self._held = ExitStack()
        self._place: DevicePort | None = None
        self._endpoint: VerbsEndpoint | None = None
        self._answers: Mapping[str, Callable[[dict[str, Any]], Any]] = {
            "describe": self._describe,
            "place": self._hold,
            "open": self._open,
            "connect": self._connect,
            "trial": self._trial,
            "bandwidth": self._bandwidth,
            "latency": self._latency,
            "perftest": self._perftest,
            "counters": self._counters,
            "stop_answering": self._stop_answering,
            "cut": self._cut,
            "heal": self._heal,
            "close": self._close,
        }

    def serve(self) -> None:
        """Answer requests until the other end is gone, and free everything."""
        try:
            while True:
                request = receive_message(self._connection, within_s=scaled(self._silence_s))
                send_message(self._connection, self._answer(request))
        except ChannelError:
            return  # gone: the controller has its answers, or no longer wants them
        finally:
            self._cutter.heal()
            self._held.close()

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        name = str(request.pop("do", ""))
        try:
            require_one_of(name, tuple(self._answers), where="do", what="request", error=InputError)
            return {"result": self._answers[name](request)}
        except FabrictuneError as error:
            return {"error": type(error).__name__, "mistakes": [asdict(mistake) for mistake in error.mistakes]}
        except OSError as error:  # a device that goes while it is looked at
            mistake = Mistake(where=str(error.filename or name), found=error.strerror or str(error))
            return {"error": UnavailableError.__name__, "mistakes": [asdict(mistake)]}

    def _describe(self, request: dict[str, Any]) -> Any:
        return {"host": platform.node(), "python": platform.python_version(), "diagnosis": asdict(diagnose())}

    def _hold(self, request: dict[str, Any]) -> dict[str, Any]:
        """Keep a port for this measurement, without queue pairs of our own on it."""
        spec = parse_spec(PlaceSpec, request, where="place")
        self._close({})
        place = find_device_port(spec.device, spec.port, None if spec.gid_index < 0 else spec.gid_index)
        self._held.enter_context(hold_port(place.device, place.port, spec.role))
        self._place = place
        ipv4 = place.gid.address.ipv4_mapped
        return {"device": place.device, "port": place.port, "gid_index": place.gid.index, "ipv4": str(ipv4 or "")}

    def _open(self, request: dict[str, Any]) -> Any:
        size = parse_spec(OpenSpec, {name: request.pop(name) for name in SIZES if name in request}, where="open")
        require_devices(diagnose(), where="open")
        where = self._hold(request)
        assert self._place is not None, "held just now"
        endpoint = VerbsEndpoint(self._place, **asdict(size))
        self._endpoint = self._held.enter_context(endpoint)
        return {**where, "address": asdict(endpoint.address)}

    def _connect(self, request: dict[str, Any]) -> Any:
        peer = parse_spec(Address, request.get("peer"), where="connect.peer")
        self._opened.connect(peer, parse_spec(ConnectionSpec, request.get("spec"), where="connect.spec"))

    def _trial(self, request: dict[str, Any]) -> Any:
        return asdict(run_trial(self._opened, parse_spec(TrialSpec, request, where="trial"), self._is_abandoned))

    def _bandwidth(self, request: dict[str, Any]) -> Any:
        return asdict(measure_bandwidth(self._opened, self._transfer_spec(request), self._is_abandoned))

    def _latency(self, request: dict[str, Any]) -> Any:
        return asdict(measure_latency(self._opened, self._transfer_spec(request), self._is_abandoned))

    def _transfer_spec(self, request: dict[str, Any]) -> TransferSpec:
        spec = parse_spec(TransferSpec, request, where="transfer")
        if spec.message_bytes > self._opened.buffer_bytes:
            raise InputError(
                Mistake(
                    where="message_bytes", found=f"{spec.message_bytes}", allowed=f"1 to {self._opened.buffer_bytes}"
                )
            )
        return spec

    def _perftest(self, request: dict[str, Any]) -> Any:
        return asdict(run_perftest(parse_spec(PerftestSpec, request, where="perftest"), self._placed))

    def _counters(self, request: dict[str, Any]) -> Any:
        return read_counters(self._placed.device, self._placed.port)

    def _stop_answering(self, request: dict[str, Any]) -> None:
        self._opened.stop_answering()

    def _cut(self, request: dict[str, Any]) -> None:
        known = {name: request[name] for name in ("silence_s",) if name in request}
        self._cut_silence_s = parse_spec(CutSpec, known, where="cut").silence_s
        self._cutter.cut()

    def _heal(self, request: dict[str, Any]) -> None:
        for _ in polling(parse_spec(HealSpec, request, where="heal").after_s, self._is_abandoned, pause_s=HEAL_PAUSE_S):
            pass
        self._cutter.heal()

    def _close(self, request: dict[str, Any]) -> None:
        self._cutter.heal()
        self._held.close()
        self._held, self._place, self._endpoint = ExitStack(), None, None

    @property
    def _silence_s(self) -> float:
        return self._cut_silence_s if self._cutter.is_cut else LONGEST_SILENCE_S

    @property
    def _placed(self) -> DevicePort:
        if self._place is None:
            raise InputError(Mistake(where="do", found="a request for a port", next_step="name one before"))
        return self._place

    @property
    def _opened(self) -> VerbsEndpoint:
        if self._endpoint is None:
            raise InputError(Mistake(where="do", found="a request for an endpoint", next_step="open one before"))
        return self._endpoint

    @property
    def _is_abandoned(self) -> Callable[[], bool]:
        return partial(has_ended, self._connection)


def hold_port(device: str, port: int, role: str) -> socket.socket:
    """Return what keeps others from a port until it is closed; raises UnavailableError where somebody else has it.

    It is a socket with a name of Linux's own kind, which leaves no file behind when a process dies.
    """
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        holder.bind(f"\0fabrictune-{device}-{port}-{role}")
    except OSError as error:
        holder.close()
        found = f"another measurement uses it as its {role}"
        next_step = "wait for it to end, or name another port"
        raise UnavailableError(Mistake(where=f"{device} port {port}", found=found, next_step=next_step)) from error
    return holder
