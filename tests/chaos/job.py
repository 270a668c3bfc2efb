"""The job of a run: its recipe, its command, and a driver that is started again when it was killed.

Each run has a folder with everything: the job's own, storage, /dev/shm (bound over it in a mount namespace), the place
of temporary files, and the console. It has network namespaces of its own, so that what it leaves is seen.
"""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos import network
from tests.chaos.network import HUB, Network
from tests.chaos.plan import MEMORY_EVERY, NODES, NUM_STEPS, SAVE_EVERY
from tests.chaos.processes import MARK

RECIPE = """name: chaos
model: {{preset: tiny, vocabulary: 258, depth: 2}}
degrees:
  layout: {{tp: 2, pp: 2, dp: 2}}
  num_batches: 2
  batch_size: 1
schedule: {{peak: 3.0e-3, num_warmup_steps: 4, num_steps: {steps}}}
data: {{source: tokens, path: {tokens}}}
num_steps: {steps}
"""
RESTART_AFTER_S = 0.5  # as a service manager does


@dataclass(kw_only=True)
class Job:
    """A job in a folder; `start` it, and `poll` it until it is over."""

    folder: Path
    mark: str
    tokens: Path
    storage: str = ""  # address of the checkpoints; by default a folder
    environment: Mapping[str, str] = field(default_factory=dict)
    is_network: bool = False
    num_spares: int = 0
    driver: "subprocess.Popen[bytes] | None" = None
    exit_code: int | None = None
    num_starts: int = 0
    _ended_s: float | None = None
    _network: Network | None = None

    def prepare(self) -> None:
        """Make the folder, the recipe and the namespaces."""
        for name in ("shm", "tmp", "storage"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "recipe.yaml").write_text(RECIPE.format(steps=NUM_STEPS, tokens=self.tokens))
        if not network.lack():
            self._network = Network(f"chaos-{self.mark}", NODES if self.is_network else ())

    @property
    def network(self) -> Network:
        """The namespaces of this run."""
        assert self._network is not None, "a run with a network"
        return self._network

    @property
    def run(self) -> Path:
        """The job's own folder, with its journal."""
        return self.folder / "job"

    def start(self) -> None:
        """Start the driver, or start it again."""
        self.num_starts += 1
        with (self.folder / "console").open("ab") as console:
            self.driver = subprocess.Popen(
                self._command(),
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                cwd=self.folder,
                start_new_session=True,
            )

    def poll(self) -> bool:
        """Return whether the job is over; a driver that was killed is started again after a while."""
        assert self.driver is not None, "started"
        if self.exit_code is not None:
            return True
        code = self.driver.poll()
        if code is None:
            return False
        if code >= 0:
            self.exit_code = code
            return True
        self._ended_s = self._ended_s or time.monotonic()
        if time.monotonic() - self._ended_s > RESTART_AFTER_S:
            self._ended_s = None
            self.start()
        return False

    def close(self) -> tuple[str, ...]:
        """Remove the namespaces; returns the sockets and files that the job left in places of all."""
        left = [f"{place} {path.name}" for place in ("shm", "tmp") for path in sorted((self.folder / place).iterdir())]
        if self._network is not None:
            left += [f"socket {line}" for line in self._network.sockets()]
            self._network.close()
            self._network = None
        return tuple(left)

    def _command(self) -> Sequence[str]:
        words = [*self._isolation(), sys.executable, "-P", "-m", "fabrictune", "train", "operate", "recipe.yaml"]
        words += ["--run", str(self.run), "--nodes", "2", "--slots", "4"]
        words += ["--spares", str(self.num_spares)]
        words += ["--checkpoint", self.storage or str(self.folder / "storage"), "--backend-transport", "ordered"]
        words += ["--save-every", str(SAVE_EVERY), "--memory-every", str(MEMORY_EVERY)]
        if self.is_network:
            inside = " ".join(self.network.entered("{node}"))
            words += ["--host", self.network.address(HUB), "--interface", network.INTERFACE, "--inside", inside]
        return words

    def _isolation(self) -> Sequence[str]:
        if self._network is None:
            return ()
        bind = 'mount --bind "$0" /dev/shm && exec "$@"'
        mount = ("unshare", "--mount", "--propagation", "private", "sh", "-c", bind, str(self.folder / "shm"))
        return (*self._network.entered(HUB), *mount)

    def _environment(self) -> Mapping[str, str]:
        own = {MARK: self.mark, "TMPDIR": str(self.folder / "tmp")}
        return {**os.environ, **own, **self.environment}
