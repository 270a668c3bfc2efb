"""Completions with an error in a log of NCCL, down to the device, its port and address, and the peer.

NCCL writes one warning for each, in wordings that grew over the years: a number alone (`with error 12`), key and value
(`status=12 ... vendor err 129`), names with numbers (`status=IBV_WC_RETRY_EXC_ERR(12) ... vendor_err=129`), and at the
end both GIDs on RoCE and the device. What a warning leaves out is taken from the rest of the log: the device by its own
address, the port from the list of devices, the peer's host by the address it logged itself.

Source: NCCL, src/transport/net_ib.cc (2.4 to 2.28), src/transport/net_ib/p2p.cc (since 2.29).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv6Address

from fabrictune.collectives.nccl.log import NcclLog
from fabrictune.collectives.nccl.log_facts import DeviceFact, QueuePairFact, WarningFact
from fabrictune.foundation.flows import UNKNOWN

_WARNING = re.compile(
    r"NET/IB\w{0,4}(?:/GIN)? ?: Got completion (?:from peer (?P<peer>[^\s<]{1,255})<\d{1,5}> )?"
    r"with (?:error |status=)(?:\w{1,60}\()?(?P<status>\d{1,10})\b.{0,200}?"
    r"vendor[ _]err[ =](?P<vendor>\d{1,10})(?P<rest>.*)"
)
_DIRECTION = re.compile(r"\((Send|Recv)\)|req_type=(Send|Recv)")
_LOCAL_GID = re.compile(r"localGid ([0-9A-Fa-f:.]{2,45})")
_REMOTE_GID = re.compile(r"remoteGids? ?([0-9A-Fa-f:.]{2,45})")
_DEVICE = re.compile(r"\bhca ([\w.+-]{1,100})")


@dataclass(frozen=True, kw_only=True)
class CompletionError:
    """One completion with an error; text is "" and a number UNKNOWN where the log does not tell."""

    status: int  # of ibv_wc
    vendor_error: int
    direction: str  # "Send" or "Recv"
    host: str
    gpu: int
    device: str
    device_port: int
    gid: str
    gid_index: int
    peer_host: str
    peer_gid: str
    peer_address: str  # of the peer's socket, which is not on the RDMA network
    where: str

    @property
    def local(self) -> str:
        """The near end for people: `a: mlx5_1 port 1, GID ::ffff:10.0.0.1 (index 3)`."""
        port = "" if self.device_port == UNKNOWN else f" port {self.device_port}"
        index = "" if self.gid_index == UNKNOWN else f" (index {self.gid_index})"
        return f"{self.host}: {self.device or 'device not named'}{port}" + (self.gid and f", GID {self.gid}{index}")

    @property
    def peer(self) -> str:
        """The far end for people."""
        host = self.peer_host or (self.peer_address and f"the host at {self.peer_address}") or "a peer not named"
        return host + (self.peer_gid and f", GID {self.peer_gid}")


def completion_errors(log: NcclLog) -> tuple[CompletionError, ...]:
    """Return every completion error of a log, in the order in which they were written."""
    return tuple(_errors(log))


def is_completion_error(message: str) -> bool:
    """Return whether a warning is about a completion with an error."""
    return _WARNING.search(message) is not None


def _errors(log: NcclLog) -> Iterator[CompletionError]:
    places = _Places(log)
    for warning in log.warnings:
        if match := _WARNING.search(warning.message):
            yield _error(match, warning, places)


def _error(match: re.Match[str], warning: WarningFact, places: "_Places") -> CompletionError:
    gid, peer_gid = _found(_LOCAL_GID, match["rest"]), _found(_REMOTE_GID, match["rest"])
    near = places.by_gid(gid)
    device = places.device(warning.host, _found(_DEVICE, match["rest"]), near)
    far = places.by_gid(peer_gid)
    return CompletionError(
        status=int(match["status"]),
        vendor_error=int(match["vendor"]),
        direction=_found(_DIRECTION, match["rest"]),
        host=warning.host,
        gpu=warning.gpu,
        device=device.name if device else _found(_DEVICE, match["rest"]),
        device_port=device.port if device else UNKNOWN,
        gid=gid,
        gid_index=near.gid_index if near else UNKNOWN,
        peer_host=far.host if far else "",
        peer_gid=peer_gid,
        peer_address=match["peer"] or "",
        where=warning.where,
    )


class _Places:
    """Hosts of addresses, as far as the log has them."""

    def __init__(self, log: NcclLog) -> None:
        self._devices = log.devices
        self._by_ipv4 = {fact.ipv4: fact for fact in log.queue_pairs if fact.ipv4 != UNKNOWN}

    def by_gid(self, gid: str) -> QueuePairFact | None:
        """Return a queue pair that was opened from an address."""
        try:
            mapped = IPv6Address(gid).ipv4_mapped
        except AddressValueError:
            return None
        return self._by_ipv4.get(int(mapped)) if mapped else None

    def device(self, host: str, name: str, opened: QueuePairFact | None) -> DeviceFact | None:
        """Return a host's device by its name, by a queue pair opened on it, or because it is the only one."""
        own = [fact for fact in self._devices if fact.host == host]
        if name:
            return next((fact for fact in own if fact.name == name), None)
        if opened:
            return next((fact for fact in own if fact.index == opened.device), None)
        return own[0] if len({fact.name for fact in own}) == 1 else None


def _found(pattern: re.Pattern[str], text: str) -> str:
    """Return the first group that matched, "" without a match."""
    match = pattern.search(text)
    return next((group for group in match.groups() if group), "") if match else ""
