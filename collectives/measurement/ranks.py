"""Part of one rank in a bench: it runs every case, samples begin and end of each iteration, and shares the samples.

Iterations follow one another without a barrier, and each is waited for (nccl-tests' `-z 2`), so that the notes say when
each rank arrived and when it left. Times are rank 0's clock.

Shapes: R ranks, C cases, K iterations.
"""

import time

import numpy as np
import torch
import torch.distributed as dist

from fabrictune.collectives.measurement.clocks import host_number, measure_offset, on_clock_of_rank_0
from fabrictune.collectives.measurement.spec import BenchCase, BenchSpec
from fabrictune.collectives.measurement.timing import TimingSamples
from fabrictune.collectives.measurement.trials import RankPlace, make_trial
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.progress import Progress


def run_bench(spec: BenchSpec, progress: Progress | None = None) -> TimingSamples:
    """Run all cases with the ranks of the default group; each of them calls this, and gets the samples of all."""
    is_on_gpus = dist.get_backend() == "nccl"
    device = torch.device("cuda", torch.cuda.current_device()) if is_on_gpus else torch.device("cpu")
    place = RankPlace(rank=dist.get_rank(), num_ranks=dist.get_world_size(), device=device)
    hosts = _share(np.array([host_number()]), device)[:, 0].tolist()
    before = measure_offset(hosts, device)
    cases = spec.cases(place.num_ranks, is_on_gpus=is_on_gpus)
    stamps_CK2 = np.zeros((len(cases), spec.num_iterations, 2), np.int64)
    num_wrong_C = np.zeros(len(cases), np.int64)
    for number, case in enumerate(cases):
        stamps_CK2[number], num_wrong_C[number] = _run_case(case, place, spec)
        if progress:
            progress((number + 1) / len(cases))
    stamps_CK2, clock_error_ns = on_clock_of_rank_0(stamps_CK2, before, measure_offset(hosts, device))
    stamps_RCK2 = _share(stamps_CK2, device)
    return TimingSamples(
        began_ns_RCK=stamps_RCK2[..., 0],
        ended_ns_RCK=stamps_RCK2[..., 1],
        num_wrong_RC=_share(num_wrong_C, device),
        host_R=np.unique(hosts, return_inverse=True)[1],
        clock_error_ns_R=_share(np.array([clock_error_ns]), device)[:, 0],
    )


def _run_case(case: BenchCase, place: RankPlace, spec: BenchSpec) -> tuple[IntArray, int]:
    """Return when each iteration began and ended, shape (K, 2), and the number of wrong elements here."""
    trial = make_trial(case, place)
    trial.clear()
    for _ in range(spec.num_warmups):
        trial.run()
    dist.barrier()
    stamps_K2 = np.zeros((spec.num_iterations, 2), np.int64)
    for iteration in range(spec.num_iterations):
        began_ns = time.perf_counter_ns()
        trial.run()
        stamps_K2[iteration] = began_ns, time.perf_counter_ns()
    return stamps_K2, trial.count_wrong()


def _share(own: IntArray, device: torch.device) -> IntArray:
    """Return the arrays of all ranks, one a row."""
    tensor = torch.from_numpy(np.ascontiguousarray(own)).to(device)
    gathered = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, tensor)
    return np.stack([one.cpu().numpy() for one in gathered])
