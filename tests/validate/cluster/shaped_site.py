"""A small site for real: hosts with OpenSSH servers of their own, every host's port shaped, and its planned fabric."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from fabrictune.foundation.output_files import claim
from tests.fleet.ssh_cluster import SshCluster, SshNode, ssh_cluster
from tests.patience import patience

RATE_MBPS = 50
COLUMNS = "Side A Device,Side A Role,Side A Name,Side B Device,Side B Role,Side B Name,Speed,Rail"
QUICK = ("--flow-time", "0.4", "--max-bytes", "512 KiB", "--paths", "1")


class ShapedSite:
    """The site up and running."""

    def __init__(self, cluster: SshCluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.out, self.plan = folder / "validation", folder / "planned.csv"

    def words(self, *words: str) -> list[str]:
        """Return the words of a validation."""
        limits = ("--stage-timeout", str(patience(60)), "--connect-timeout", str(patience(5)))
        fixed = ("--fabric", str(self.plan), "--python", sys.executable, "--out", str(self.out))
        return ["validate", "cluster", str(self.cluster.inventory), *fixed, *QUICK, *limits, *words]

    def validate(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a validation to its end."""
        return self.cluster.run(*self.words(*words))

    def result(self, stage: str) -> Mapping[str, Any]:
        """Return what a stage's file has."""
        tree: Mapping[str, Any] = json.loads((self.out / "stages" / f"{stage}.json").read_text())
        return tree

    def interrupt_after(self, stage: str, *words: str) -> "subprocess.CompletedProcess[bytes]":
        """Run a validation, and press Ctrl-C when this stage's file is there."""
        place = self.out / "stages" / f"{stage}.json"
        place.unlink(missing_ok=True)
        with self.cluster.start(*self.words(*words)) as process:
            ends_s = time.monotonic() + patience(60)
            while not place.exists() and process.poll() is None:
                assert time.monotonic() < ends_s, f"{stage} does not end"
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=patience(60))
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def launch(self, *words: str) -> "list[subprocess.CompletedProcess[str]]":
        """Run a validation as torchrun would, a rank on each host, and return how each ended."""
        options = ("--fabric", str(self.plan), "--out", str(self.out), *QUICK, *words)
        command = [sys.executable, "-m", "fabrictune", "validate", "cluster", *options]
        ranks = []
        for rank, node in enumerate(self.cluster.nodes):
            variables = {"RANK": rank, "WORLD_SIZE": len(self.cluster.nodes), "LOCAL_RANK": 0, "MASTER_PORT": 29500}
            environment = {name: str(value) for name, value in variables.items()}
            environment |= {**os.environ, "MASTER_ADDR": self.cluster.address(0)} | environment
            named = ("unshare", "--uts", "sh", "-c", f'hostname {node.name} && exec "$@"', "sh")
            inside = ("ip", "netns", "exec", f"{self.cluster.hub}-{rank}", *named, *command)
            pipe = subprocess.PIPE
            ranks.append(subprocess.Popen(inside, env=environment, stdout=pipe, stderr=pipe, text=True))
        ended = []
        for process in ranks:
            output, errors = process.communicate(timeout=patience(120))
            ended.append(subprocess.CompletedProcess(process.args, process.returncode, output, errors))
        return ended

    def leftovers(self) -> list[str]:
        """Return the programs of ours that run in a host, once those that are ending have had time to."""
        ends_s = time.monotonic() + patience(20)
        while (found := list(self._programs())) and time.monotonic() < ends_s:
            pass
        return found

    def _programs(self) -> Iterator[str]:
        for number in range(len(self.cluster.nodes)):
            words = ("ip", "netns", "pids", f"{self.cluster.hub}-{number}")
            listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
            for pid in listed.split():
                try:
                    command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                except OSError:
                    continue
                if "cluster.nodes" in command:
                    yield command


@contextmanager
def shaped_site(
    folder: Path, nodes: Sequence[SshNode], rates_mbps: Mapping[str, int] | None = None
) -> Iterator[ShapedSite]:
    """Give a site whose hosts send at RATE_MBPS, or at rates of their own."""
    with ssh_cluster(folder, nodes) as cluster:
        for number, node in enumerate(nodes):
            rate = f"{(rates_mbps or {}).get(node.name, RATE_MBPS)}mbit"
            shape = ("tbf", "rate", rate, "burst", "64kb", "latency", "50ms")
            namespace = f"{cluster.hub}-{number}"
            words = ("tc", "-n", namespace, "qdisc", "add", "dev", "eth0", "root", *shape)
            subprocess.run(words, check=True, capture_output=True, timeout=patience(30))
        site = ShapedSite(cluster, folder)
        cables = (f"{node.name},server,eth0,leaf1,leaf,Ethernet{n},{RATE_MBPS} Mbps,0" for n, node in enumerate(nodes))
        site.plan.write_text("\n".join((COLUMNS, *cables)) + "\n")
        yield site


def node_folders() -> set[str]:
    """Return the temporary folders of nodes' programs that nobody holds: those that were left."""
    return {path.name for path in Path(gettempdir()).glob("fabrictune-node-*") if is_abandoned(path)}


def is_abandoned(path: Path) -> bool:
    """Return whether no process holds a folder."""
    try:
        descriptor = claim(path)
    except FileNotFoundError:
        return False
    if descriptor is not None:
        os.close(descriptor)
    return descriptor is not None
