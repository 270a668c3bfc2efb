"""The backend of a job by its name, with what each one needs, and the command by which its nodes start."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from fabrictune.foundation.children import module_command
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.trainer_probe.operation.backends.agents import AgentBackend
from fabrictune.trainer_probe.operation.backends.backend import Backend
from fabrictune.trainer_probe.operation.backends.local import LocalBackend
from fabrictune.trainer_probe.operation.run_folder import RunFolder

BackendName = Literal["local", "torchelastic", "slurm", "kubernetes"]
BACKENDS: tuple[BackendName, ...] = get_args(BackendName)
_OWN = {"sbatch_options": ("slurm", "--sbatch"), "pod": ("kubernetes", "--pod"), "context": ("kubernetes", "--context")}
NUM_JOB_LETTERS = 16  # of a job's name that other systems see


@dataclass(frozen=True, kw_only=True)
class NodeSource:
    """Where the nodes of a job come from."""

    backend: BackendName = "local"
    sbatch_options: tuple[str, ...] = ()
    pod: Mapping[str, Any] = field(default_factory=dict)  # template of a pod
    namespace: str = "default"
    context: str | None = None  # of the kubeconfig
    python: str = sys.executable  # these three as a node sees them
    key: str = ""  # file; "" for the one in the job's folder
    folder: str = ""  # for the nodes' own folders; "" for the job's folder

    def __post_init__(self) -> None:
        mistakes = [
            Mistake(where=option, found=f"with backend {self.backend}", allowed=f"--backend {backend}")
            for name, (backend, option) in _OWN.items()
            if getattr(self, name) and backend != self.backend
        ]
        if self.backend == "kubernetes" and not self.pod:
            mistakes.append(Mistake(where="--pod", found="nothing", allowed="a file with a pod's metadata and spec"))
        if mistakes:
            raise InputError(*mistakes)

    def open(self, folder: RunFolder) -> Backend:
        """Return the backend of a job; raises InputError and UnavailableError as the backends do."""
        job = folder.job()[:NUM_JOB_LETTERS]
        match self.backend:
            case "local":
                return LocalBackend(folder.nodes, folder.job())
            case "torchelastic":
                return AgentBackend()
            case "slurm":
                return self._slurm(job, folder)
            case "kubernetes":
                return self._kubernetes(job)

    def command(self, folder: RunFolder, node: str, options: Mapping[str, str]) -> Sequence[str]:
        """Return the command that runs a node's executor."""
        own = {
            "--key": self.key or str(folder.key_file.absolute()),
            "--job": folder.job(),
            "--node": node,
            "--folder": str((Path(self.folder) if self.folder else folder.nodes.absolute()) / node),
        }
        words = module_command("fabrictune", "train", "executor", python=self.python)
        return [*words, *(word for pair in {**options, **own}.items() for word in pair)]

    def _slurm(self, job: str, folder: RunFolder) -> Backend:
        from fabrictune.trainer_probe.operation.backends.polling import PollingBackend
        from fabrictune.trainer_probe.operation.backends.slurm import SlurmBackend, SlurmSettings

        folder.nodes.mkdir(exist_ok=True)
        output = f"{folder.nodes.absolute()}/%x.%j.log"
        backend = SlurmBackend(job, SlurmSettings(options=self.sbatch_options, output=output))
        backend.warn_of_tracking()
        return PollingBackend(backend)

    def _kubernetes(self, job: str) -> Backend:
        from fabrictune.trainer_probe.operation.backends.kubernetes import KubernetesBackend, KubernetesSettings
        from fabrictune.trainer_probe.operation.backends.polling import PollingBackend

        settings = KubernetesSettings(template=self.pod, namespace=self.namespace, context=self.context)
        return PollingBackend(KubernetesBackend(job, settings))
