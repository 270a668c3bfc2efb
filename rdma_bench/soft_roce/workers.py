"""Two workers inside the virtual machine, one for each end of its wire, led from outside as those of any two hosts."""

import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rdma_bench.measuring.pair import Pair, Place
from rdma_bench.measuring.workers import remote_worker
from rdma_bench.soft_roce.image import get_image
from rdma_bench.soft_roce.machine import GUEST_FOLDER, Machine, boot

GUEST_IPV4 = "10.0.2.15"
SENDER_PORT, RECEIVER_PORT = 18700, 18701
SENDER, RECEIVER = Place(device="rxe_a"), Place(device="rxe_b")
CUT = "tc filter add dev wire_b ingress pref 1 matchall action drop"
HEAL = "tc filter del dev wire_b ingress pref 1"
_START_TIMEOUT_S = 30.0
_LOOK_S = 0.2


@contextmanager
def soft_roce_machine(cache: Path | None = None) -> Iterator[Machine]:
    """Give a virtual machine with its RDMA devices up, built if it must be; raises UnavailableError."""
    with boot(get_image(cache), guest_ports=(SENDER_PORT, RECEIVER_PORT)) as machine:
        machine.run(f"sh {GUEST_FOLDER}/network.sh")
        yield machine


@contextmanager
def soft_roce_pair(machine: Machine) -> Iterator[Pair]:
    """Give the two ends of the machine's wire, whose workers end with the block."""
    token = secrets.token_hex(32)
    (machine.share / "token").write_text(token)
    try:
        for port in (SENDER_PORT, RECEIVER_PORT):
            _start_worker(machine, port)
        with ExitStack() as stack:
            near, far = (
                stack.enter_context(remote_worker(f"127.0.0.1:{machine.port_by_guest_port[port]}", token))
                for port in (SENDER_PORT, RECEIVER_PORT)
            )
            yield Pair(sender=near, receiver=far, sender_place=SENDER, receiver_place=RECEIVER)
    finally:
        machine.attempt(f"for port in {SENDER_PORT} {RECEIVER_PORT}; do kill $(cat /run/$port.pid); done")


def _start_worker(machine: Machine, port: int) -> None:
    log = f"/share/{port}.log"
    command = (
        f"python3 -m rdma_bench.verbs.worker --listen {GUEST_IPV4}:{port} --token-file /share/token"
        f' --cut-command "{CUT}" --heal-command "{HEAL}"'
    )
    machine.run(f": >{log}; {command} >>{log} 2>&1 & echo $! >/run/{port}.pid")
    deadline = time.monotonic() + _START_TIMEOUT_S
    while "listening" not in machine.run(f"cat {log}") and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
