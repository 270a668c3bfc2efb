"""Which other nodes answer this one: a connection to each is tried every two seconds.

A connection that is refused is an answer too; it comes from the kernel, whatever processes the other node has. A node
that has never answered is not reported: on the way to it may be a firewall that drops what it does not know. One that
misses two trials in a row is.

Left out: bandwidth, and routes that only some flows take.
"""

import errno
import select
import socket
import threading
import time
from collections.abc import Callable, Collection, Mapping

PORT = 9  # discard: nobody listens
EVERY_S, WITHIN_S = 2.0, 1.0
MISSES = 2
MAX_PEERS = 16  # that one node tries: those after it in order, so that each is tried by as many
_ANSWERS = (0, errno.ECONNREFUSED, errno.ECONNRESET)

Probe = Callable[[Mapping[str, str]], Collection[str]]


def answering(addresses: Mapping[str, str], within_s: float = WITHIN_S) -> Collection[str]:
    """Return the nodes whose address answers in time; all are tried at once."""
    poll, waiting, answers = select.poll(), dict[int, tuple[str, socket.socket]](), set[str]()
    try:
        for name, address in addresses.items():
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            trial = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            waiting[trial.fileno()] = name, trial
            poll.register(trial, select.POLLOUT)
            trial.connect_ex((address, PORT))
        deadline_s = time.monotonic() + within_s
        while waiting and (ready := poll.poll(1000 * max(0.0, deadline_s - time.monotonic()))):
            for descriptor, _ in ready:
                name, trial = waiting.pop(descriptor)
                poll.unregister(descriptor)
                if trial.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) in _ANSWERS:
                    answers.add(name)
                trial.close()
    finally:
        for _, trial in waiting.values():
            trial.close()
    return answers


class Reachability:
    """The trials of one node, in a thread of its own from the first `watch` on."""

    def __init__(self, node: str, probe: Probe = answering) -> None:
        self._node, self._probe = node, probe
        self._addresses: Mapping[str, str] = {}
        self._num_missed: Mapping[str, int] = {}  # since the last answer, of nodes that have answered
        self._is_closed = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, addresses: Mapping[str, str]) -> None:
        """Try these nodes from now on, without this one."""
        order = sorted(addresses)
        after = [name for name in order if name > self._node] + [name for name in order if name < self._node]
        self._addresses = {name: addresses[name] for name in after[:MAX_PEERS]}
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="reachability", daemon=True)
            self._thread.start()

    def unreachable(self) -> tuple[str, ...]:
        """Return the nodes that answered before and do not now."""
        return tuple(sorted(name for name, missed in self._num_missed.items() if missed >= MISSES))

    def try_all(self) -> None:
        """Try every node once."""
        addresses, missed = self._addresses, self._num_missed
        answers = self._probe(addresses)
        found = {name: missed[name] + 1 for name in addresses if name in missed}
        self._num_missed = {**found, **dict.fromkeys(answers, 0)}

    def close(self) -> None:
        """End the trials."""
        self._is_closed.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._is_closed.is_set():
            self.try_all()
            self._is_closed.wait(EVERY_S)
