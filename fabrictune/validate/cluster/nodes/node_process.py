"""The program on a node: takes orders as lines on its standard input, and answers on its standard output.

`python -m fabrictune.validate.cluster.nodes.node_process`. It ends, and with it every process and file of its own, when
its input ends (an SSH channel that closes, a launcher that is gone), when nothing was heard for SILENCE_S, or when it
is told to. Secrets come with the orders, so that no command line has them. Orders are carried out at once, each in a
thread; what they may be is a table.
"""

import os
import secrets
import selectors
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from fabrictune.fleet.collect.questions import COUNTERS, SETTINGS
from fabrictune.fleet.collect.script import node_script
from fabrictune.foundation.errors import FabrictuneError
from fabrictune.foundation.temporary_folders import temporary_folder
from fabrictune.foundation.time_limits import scaled
from fabrictune.validate.cluster.nodes.children import Children
from fabrictune.validate.cluster.nodes.flows import FlowSpec, Receiver, send_flow
from fabrictune.validate.cluster.nodes.machine import describe_node, version_of
from fabrictune.validate.cluster.nodes.wire import SILENCE_S, LineReader, WireError, encode

PREFIX = "fabrictune-node-"
PIECE_BYTES = 2**16
MAX_ORDERS = 256  # that are carried out at once
QUESTIONS = {"settings": SETTINGS, "counters": COUNTERS}


class Channel(Protocol):
    """Both directions to the controller."""

    def receive(self, limit_s: float) -> bytes:
        """Return what came, b"" at its end or after the limit."""

    def send(self, data: bytes) -> None:
        """Send all of it; raises OSError."""


class StandardStreams:
    """Standard input and output; what anything else prints goes to standard error."""

    def __init__(self) -> None:
        self._output = os.dup(1)
        os.dup2(2, 1)
        self._selector = selectors.DefaultSelector()
        self._selector.register(0, selectors.EVENT_READ)

    def receive(self, limit_s: float) -> bytes:
        """Return what came, b"" at its end or after the limit."""
        return os.read(0, PIECE_BYTES) if self._selector.select(limit_s) else b""

    def send(self, data: bytes) -> None:
        """Send all of it; raises OSError."""
        while data:
            data = data[os.write(self._output, data) :]


class SocketChannel:
    """A connection to the controller, of a node that a launcher started."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def receive(self, limit_s: float) -> bytes:
        """Return what came, b"" at its end or after the limit."""
        self._connection.settimeout(limit_s)
        try:
            return self._connection.recv(PIECE_BYTES)
        except OSError:
            return b""

    def send(self, data: bytes) -> None:
        """Send all of it; raises OSError."""
        self._connection.sendall(data)


@dataclass(frozen=True, kw_only=True)
class NodeState:
    """What the orders of a node share."""

    children: Children
    receivers: list[Receiver] = field(default_factory=list)


def serve(channel: Channel) -> None:
    """Carry out orders until they end."""
    lock, slots, reader = threading.Lock(), threading.Semaphore(MAX_ORDERS), LineReader()

    def answer(values: Mapping[str, Any]) -> None:
        with lock, suppress(OSError):  # the controller is gone, which the next reading sees
            channel.send(encode(values))

    def carry_out(order: dict[str, Any]) -> None:
        with slots:
            answer({"number": order.get("number"), **_outcome(order, state)})

    with temporary_folder(PREFIX) as folder:
        state = NodeState(children=Children(str(folder)))
        answer({"hello": version_of("fabrictune"), "pid": os.getpid()})
        try:
            for order in _orders(channel, reader):
                if order.get("do") == "end":
                    break
                threading.Thread(target=carry_out, args=(order,), daemon=True).start()
        except WireError as error:
            answer({"error": str(error)})
        finally:
            state.children.end()


def _orders(channel: Channel, reader: LineReader) -> Iterator[dict[str, Any]]:
    while data := channel.receive(scaled(SILENCE_S)):
        yield from reader.feed(data)


def _outcome(order: Mapping[str, Any], state: NodeState) -> dict[str, Any]:
    do = ORDERS.get(str(order.get("do")))
    if do is None:
        return {"error": f"unknown order {order.get('do')!r}: another version of fabrictune"}
    try:
        return {"result": do(order, state)}
    except FabrictuneError as error:
        return {"error": str(error)}
    except (OSError, TypeError, ValueError, KeyError) as error:
        return {"error": f"{type(error).__name__}: {error}" if not isinstance(error, OSError) else str(error)}


def _machine(order: Mapping[str, Any], state: NodeState) -> Any:
    return describe_node()


def _listen(order: Mapping[str, Any], state: NodeState) -> Any:
    receivers = [Receiver(address, order["token"]) for address in order["addresses"]]
    state.receivers.extend(receivers)
    return [receiver.port for receiver in receivers]


def _close(order: Mapping[str, Any], state: NodeState) -> Any:
    while state.receivers:
        state.receivers.pop().close()


def _send(order: Mapping[str, Any], state: NodeState) -> Any:
    """Send all flows of this node at once, each result a rate or an error."""
    results: list[dict[str, Any]] = [{"error": "not begun"} for _ in order["flows"]]

    def send(number: int) -> None:
        try:
            results[number] = send_flow(FlowSpec(**order["flows"][number]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            results[number] = {"error": str(error) or type(error).__name__}

    threads = [threading.Thread(target=send, args=(number,), daemon=True) for number in range(len(results))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def _loopback(order: Mapping[str, Any], state: NodeState) -> Any:
    """Return what a flow from this node to itself gets, which no link limits."""
    token = secrets.token_hex(16)
    receiver = Receiver("127.0.0.1", token)
    try:
        spec = FlowSpec(
            host="127.0.0.1",
            port=receiver.port,
            source="",
            token=token,
            duration_s=order["duration_s"],
            skip_s=order["skip_s"],
        )
        return send_flow(spec)["rate_bps"]
    finally:
        receiver.close()


def _port(order: Mapping[str, Any], state: NodeState) -> Any:
    with socket.create_server(("", 0)) as listener:
        return listener.getsockname()[1]


def _ranks(order: Mapping[str, Any], state: NodeState) -> Any:
    """Run the ranks of this node, and return the result of each; the first that fails is an error of all."""
    settings, limit_s = order["ranks"], float(order["limit_s"])
    results: list[Any] = [None] * len(settings)
    errors: list[str] = []

    def run(number: int) -> None:
        try:
            results[number] = state.children.run_rank(settings[number], limit_s)
        except (OSError, KeyError, TypeError) as error:
            errors.append(f"rank {settings[number]['launched']['rank']}: {error}")

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(settings))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise OSError(errors[0])
    return results


def _read(order: Mapping[str, Any], state: NodeState) -> Any:
    output, _ = state.children.run(["sh", "-s"], node_script(QUESTIONS[order["questions"]]), {}, order["limit_s"])
    return output


ORDERS: Mapping[str, Callable[[Mapping[str, Any], NodeState], Any]] = {
    "machine": _machine,
    "listen": _listen,
    "close": _close,
    "send": _send,
    "loopback": _loopback,
    "port": _port,
    "ranks": _ranks,
    "read": _read,
}


def main() -> None:
    """Serve the standard streams."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        serve(StandardStreams())
    sys.stderr.flush()
    os._exit(0)  # threads of orders may be waiting still, for what has been killed


if __name__ == "__main__":
    main()
