"""The time of a collective on hosts of a hardware profile: what predictions of steps and jobs ask.

Models of a profile are made once for each number of hosts and GPUs a host.
"""

from dataclasses import dataclass, field

from fabrictune.collectives.nccl.tuning.constants import LATEST
from fabrictune.collectives.nccl.tuning.model import Model
from fabrictune.collectives.nccl.tuning.prediction import Prediction, nccl_model, predict
from fabrictune.collectives.nccl.tuning.profiles import system_of
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.traces import Operation
from fabrictune.hardware.profile import HardwareProfile


@dataclass(frozen=True, kw_only=True)
class CollectiveTimes:
    """Times of collectives on GPUs of one profile."""

    profile: HardwareProfile
    version: str = LATEST
    _models: dict[tuple[int, int], Model] = field(default_factory=dict, repr=False, compare=False)

    def of(self, operation: Operation, size_bytes: int, *, num_ranks: int, num_hosts: int) -> Prediction:
        """Return choice, time and interval of a group of ranks dealt evenly over hosts; raises InputError.

        `size_bytes` is nccl-tests': the full buffer of one rank.
        """
        if num_ranks % num_hosts:
            found, allowed = f"{num_ranks} ranks on {num_hosts} hosts", "as many on each host"
            raise InputError(Mistake(where="ranks", found=found, allowed=allowed))
        key = (num_hosts, num_ranks // num_hosts)
        if key not in self._models:
            system = system_of(self.profile, num_hosts, gpus_per_host=key[1])
            self._models[key] = nccl_model(system, version=self.version)
        return predict(self._models[key], operation, size_bytes)
