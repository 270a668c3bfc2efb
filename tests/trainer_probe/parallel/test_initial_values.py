"""Initial values of every rank of ten layouts, each drawing its own shard: those of one process, bit for bit."""

import math
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest
from numpy.typing import NDArray

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.model.gpt import GptSpec
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.policies import POLICIES

pytest.importorskip("torch")

import torch

from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.model import initialization
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.initialization import make_weights
from fabrictune.trainer_probe.model.normals import random_bits
from fabrictune.trainer_probe.parallel.trainer import ParallelTrainer
from fabrictune.trainer_probe.planning.dry_run import join_alone

MODEL = GptSpec(width=16, depth=8, num_heads=4, vocabulary=12, sequence=8, seed=5)
LAYOUTS = {  # tp, pp, virtual, dp
    "1": (1, 1, 1, 1),
    "tp2": (2, 1, 1, 1),
    "tp4": (4, 1, 1, 1),
    "pp2": (1, 2, 1, 1),
    "pp4-v2": (1, 4, 2, 1),
    "dp2": (1, 1, 1, 2),
    "dp5": (1, 1, 1, 5),
    "tp2-dp3": (2, 1, 1, 3),
    "tp2-pp2-dp2": (2, 2, 1, 2),
    "tp2-pp2-v4-dp3": (2, 2, 4, 3),
}


def make_trainer(degrees: Degrees, rank: int, dtype: torch.dtype) -> ParallelTrainer:
    with join_alone(degrees.layout, rank) as member:
        return ParallelTrainer(MODEL, degrees, Comm(degrees.layout, member), POLICIES["all"], dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", LAYOUTS)
def test_ten_layouts_start_from_the_same_values(name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each element is on one rank of its tensor-parallel place, and each rank draws as many as it holds, no more.

    In half precision the master copy has them before they are rounded.
    """
    tp, pp, virtual, dp = LAYOUTS[name]
    degrees = Degrees(layout=ParallelLayout(tp=tp, pp=pp, dp=dp), virtual=virtual, num_batches=pp)
    whole, specs = make_weights(ChunkSpec(model=MODEL)), {spec.name: spec for spec in ChunkSpec(model=MODEL).weights()}
    draws: list[int] = []

    def draw(key: int, runs: Iterable[tuple[int, int]]) -> NDArray[np.uint32]:
        runs = tuple(runs)
        draws.extend(count for _, count in runs)
        return random_bits(key, runs)

    monkeypatch.setattr(initialization, "random_bits", draw)
    found = Counter[tuple[int, str]]()
    for rank in range(degrees.layout.world_size):
        draws.clear()
        place, num_normal = int(degrees.layout.coordinates(rank)["tp"]), 0
        for shard in make_trainer(degrees, rank, dtype).shards:
            assert shard.values_E.dtype == torch.float32
            for number, piece in shard.pieces():
                segment = shard.segments[number]
                part = specs[segment.name].local_part(whole[segment.name], tp, place).flatten()
                first = shard.first + piece.start - segment.offset
                values = shard.values_E[piece]
                assert torch.equal(values, part[first : first + len(values)].float()), (rank, segment.name)
                found[place, segment.name] += len(values)
                num_normal += len(values) if segment.decays else 0
        assert sum(draws) == num_normal, "its own elements, and each once"
    for spec in specs.values():
        assert {found[place, spec.name] for place in range(tp)} == {math.prod(spec.local_shape(tp))}


START = """
import time
from pathlib import Path
from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.optimizers.optimizer import make_optimizer
from fabrictune.trainer_probe.parallel.trainer import ParallelTrainer
from fabrictune.trainer_probe.planning.dry_run import join_alone
from fabrictune.trainer_probe.policies import POLICIES
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe
import torch

torch.set_num_threads(1)
recipe = load_recipe(find_recipe("175b"))
started_s = time.process_time()
with join_alone(recipe.degrees.layout, 0) as member:
    comm = Comm(recipe.degrees.layout, member)
    trainer = ParallelTrainer(recipe.model, recipe.degrees, comm, POLICIES["all"], torch.bfloat16)
    make_optimizer(trainer.shards, recipe.optimizer, comm)
peak_kib = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])  # rusage's has the starter's
print(time.process_time() - started_s, peak_kib / 2**20, sum(len(shard.values_E) for shard in trainer.shards))
"""


def test_a_rank_of_175_billion_parameters_starts_in_seconds() -> None:
    """The first rank of 12,288: 14.7 of its 2.8 billion values are its own. CPU time, since machines are busy.

    Whole weights and gradients have an address and no memory until the first step writes them.
    """
    printed = subprocess.run([sys.executable, "-c", START], check=True, capture_output=True, text=True).stdout
    seconds, gib, num_values = map(float, printed.split())
    assert num_values == pytest.approx(2.82e9 / 192, rel=0.01)
    assert seconds < 5
    assert gib < 2
