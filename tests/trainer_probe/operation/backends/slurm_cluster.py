"""A real Slurm of three nodes on this machine, with an authentication of its own, on ports the system chose."""

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from fabrictune.foundation.time_limits import scaled

COMMANDS = ("slurmctld", "slurmd", "munged", "sbatch", "runuser")
NODES = ("n1", "n2", "n3")


def missing_parts() -> str:
    """Return why no Slurm can be started here, "" where it can."""
    if os.geteuid() != 0:
        return "slurmd runs as root"
    missing = [command for command in COMMANDS if shutil.which(command) is None]
    return f"not installed: {', '.join(missing)} (Debian: slurmctld slurmd slurm-client munge)" if missing else ""


@contextmanager
def slurm_cluster(folder: Path) -> Iterator[Path]:
    """Yield the configuration of a cluster whose nodes are ready; its daemons end with the context."""
    with ExitStack() as stack:
        _start_munge(folder, stack)
        configuration = _write_configuration(folder)
        environment = {**os.environ, "SLURM_CONF": str(configuration)}
        _start(stack, ["slurmctld", "-D", "-f", str(configuration)])
        for node in NODES:
            (folder / "spool" / node).mkdir(parents=True)
            _start(stack, ["slurmd", "-D", "-f", str(configuration), "-N", node])
        _await_idle(environment)
        yield configuration


def _start(stack: ExitStack, command: list[str]) -> None:
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end() -> None:
        process.terminate()
        try:
            process.wait(scaled(20.0))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    stack.callback(end)


def _start_munge(folder: Path, stack: ExitStack) -> None:
    """Start an authentication daemon as its own user, which demands it."""
    for above in (folder, *list(folder.parents)[:3]):
        if above.owner() == "root" and above != Path("/"):
            above.chmod(above.stat().st_mode | 0o011)  # that user passes through
    own = folder / "munge"
    own.mkdir()
    key = own / "key"
    key.write_bytes(secrets.token_bytes(32))
    key.chmod(0o600)
    for path in (own, key):
        shutil.chown(path, "munge", "munge")
    own.chmod(0o755)
    options = [f"--{name}={own / file}" for name, file in (("key-file", "key"), ("socket", "socket"))]
    options += [
        f"--{name}={own / file}" for name, file in (("pid-file", "pid"), ("log-file", "log"), ("seed-file", "seed"))
    ]
    _start(stack, ["runuser", "-u", "munge", "--", "munged", "--foreground", "--num-threads=1", *options])
    deadline_s = time.monotonic() + scaled(20.0)
    while not (own / "socket").exists():
        assert time.monotonic() < deadline_s, (own / "log").read_text() if (own / "log").exists() else "no log"
        time.sleep(0.02)


def _write_configuration(folder: Path) -> Path:
    ports = _free_ports(2 + len(NODES))
    host = socket.gethostname().split(".")[0]
    lines = [
        "ClusterName=test",
        "SlurmctldHost=localhost(127.0.0.1)",
        "SlurmUser=root",
        "SlurmdUser=root",
        "AuthType=auth/munge",
        f"AuthInfo=socket={folder / 'munge' / 'socket'}",
        "CredType=cred/munge",
        f"StateSaveLocation={folder / 'state'}",
        f"SlurmdSpoolDir={folder / 'spool'}/%n",
        f"SlurmctldPidFile={folder / 'slurmctld.pid'}",
        f"SlurmdPidFile={folder}/slurmd.%n.pid",
        f"SlurmctldLogFile={folder / 'slurmctld.log'}",
        f"SlurmdLogFile={folder}/slurmd.%n.log",
        f"SlurmctldPort={ports[0]}",
        f"SlurmdPort={ports[1]}",
        "ProctrackType=proctrack/pgid",
        "TaskPlugin=task/none",
        "SelectType=select/cons_tres",
        "SchedulerParameters=sched_interval=1,batch_sched_delay=0",
        "AccountingStorageType=accounting_storage/none",
        "JobAcctGatherType=jobacct_gather/none",
        "MpiDefault=none",
        "SwitchType=switch/none",
        "ReturnToService=2",
        "KillWait=2",
        f"NodeName=n[1-3] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{','.join(map(str, sorted(ports[2:])))}] CPUs=1",
        "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP",
    ]
    (folder / "state").mkdir()
    path = folder / "slurm.conf"
    path.write_text("\n".join(lines) + "\n")
    return path


def _free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for listener in sockets:
            listener.bind(("127.0.0.1", 0))
        return [listener.getsockname()[1] for listener in sockets]


def _await_idle(environment: dict[str, str]) -> None:
    deadline_s = time.monotonic() + scaled(40.0)
    while True:
        command = ["sinfo", "--noheader", "--Node", "--format=%T"]
        states = subprocess.run(command, capture_output=True, text=True, env=environment, check=False).stdout.split()
        if states == ["idle"] * len(NODES):
            return
        assert time.monotonic() < deadline_s, states
        time.sleep(0.1)
