"""Workers inside the virtual machine, one for each end of its wire, led from outside as those of any two hosts."""

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager

from fabrictune.foundation.children import SAFE_PATH
from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.foundation.time_limits import SCALE_VARIABLE, scaled
from fabrictune.rdma_bench.measurement.pair import PortChoice, WorkerPair
from fabrictune.rdma_bench.measurement.workers import remote_worker
from fabrictune.rdma_bench.soft_roce.image import Image, get_image
from fabrictune.rdma_bench.soft_roce.machine import GUEST_FOLDER, VirtualMachine, boot
from fabrictune.rdma_bench.soft_roce.programs import WHERE

GUEST_IPV4 = "10.0.2.15"
SENDER_PORT, RECEIVER_PORT, SPARE_PORT = 18700, 18701, 18702
SENDER, RECEIVER = PortChoice(device="rxe_a"), PortChoice(device="rxe_b")
CUT = "tc filter add dev wire_b ingress pref 1 matchall action drop"
HEAL = "tc filter del dev wire_b ingress pref 1"
TOKEN = "token"  # noqa: S105 - the name of its file in the shared folder
_START_TIMEOUT_S = 60.0
_LOOK_S = 0.2


@contextmanager
def soft_roce_machine(image: Image | None = None) -> Iterator[VirtualMachine]:
    """Give a virtual machine with its RDMA devices up, its image built if it must be; raises UnavailableError."""
    with boot(image or get_image(), guest_ports=(SENDER_PORT, RECEIVER_PORT, SPARE_PORT)) as machine:
        machine.run(f"sh {GUEST_FOLDER}/network.sh")
        (machine.share / TOKEN).write_text(secrets.token_hex(32))
        yield machine


@contextmanager
def running_workers(machine: VirtualMachine, *ports: int) -> Iterator[tuple[str, ...]]:
    """Give the places, as this host reaches them, of workers that listen on ports of the guest."""
    processes = [_start_worker(machine, port) for port in ports]
    try:
        for port in ports:
            _wait_until_it_listens(machine, port)
        yield tuple(f"127.0.0.1:{machine.port_by_guest_port[port]}" for port in ports)
    finally:
        machine.attempt(f"kill {' '.join(processes)}")


@contextmanager
def soft_roce_pair(machine: VirtualMachine, sender: str, receiver: str) -> Iterator[WorkerPair]:
    """Give the workers at two places, each with its end of the wire."""
    token = (machine.share / TOKEN).read_text()
    with remote_worker(sender, token) as near, remote_worker(receiver, token) as far:
        yield WorkerPair(sender=near, receiver=far, sender_place=SENDER, receiver_place=RECEIVER)


def _start_worker(machine: VirtualMachine, port: int) -> str:
    """Return the number of its process in the guest."""
    words = (
        f"{SAFE_PATH}=1 {SCALE_VARIABLE}={os.environ.get(SCALE_VARIABLE, '')}"
        " python3 -m fabrictune.rdma_bench.verbs.worker"
        f" --listen {GUEST_IPV4}:{port} --token-file /share/{TOKEN}"
        f' --cut-command "{CUT}" --heal-command "{HEAL}"'
    )
    return machine.run(f": >{_log(port)}; {words} >>{_log(port)} 2>&1 & echo $!").strip()


def _wait_until_it_listens(machine: VirtualMachine, port: int) -> None:
    deadline = time.monotonic() + scaled(_START_TIMEOUT_S)
    while "listening" not in (output := machine.run(f"cat {_log(port)}")):
        if time.monotonic() > deadline:
            raise UnavailableError(Mistake(where=WHERE, found=f"no worker on port {port}: {output.strip()}"))
        time.sleep(_LOOK_S)


def _log(port: int) -> str:
    return f"/run/worker-{port}.log"
