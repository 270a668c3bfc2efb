"""Layers as graphs, traced and differentiated as a compiler is given them, against the same without a graph."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from fabrictune.foundation.errors import UnavailableError
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.data_parallel.spec import DataParallelSpec, StrategyName
from fabrictune.trainer_probe.model.gpt import GptSpec
from fabrictune.trainer_probe.model.llama import LlamaSpec
from fabrictune.trainer_probe.model.moe import MoeSpec
from fabrictune.trainer_probe.model.spec import ModelSpec
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.parallel.schedule import ScheduleName
from fabrictune.trainer_probe.policies import POLICIES, Compilation, Recompute
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.trainer_probe.training.hardware import check_device

pytest.importorskip("torch")

import torch
from torch._dynamo.testing import CompileCounterWithBackend
from torch.testing import assert_close

from fabrictune.collectives.startup.groups import GroupPlan
from fabrictune.collectives.startup.process_groups import Member
from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.model.forward import MicroBatch
from fabrictune.trainer_probe.parallel import compiled_layers
from fabrictune.trainer_probe.parallel.compiled_layers import CompiledLayers
from fabrictune.trainer_probe.parallel.trainer import ParallelTrainer
from fabrictune.trainer_probe.planning.dry_run import join_alone

pytestmark = pytest.mark.filterwarnings(  # torch's own code, as it traces
    "ignore:.torch.jit.script_method. is deprecated:DeprecationWarning",
    "ignore:.*should not be instantiated:DeprecationWarning",
)
ALONE = ParallelLayout()
ROUNDING: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-15}
SHAPE: dict[str, Any] = {"width": 8, "depth": 3, "num_heads": 2, "vocabulary": 6, "sequence": 4}
GROUPED: dict[str, Any] = {**SHAPE, "num_key_value_heads": 2, "feed_forward_width": 12}
MODELS: dict[str, ModelSpec] = {
    "gpt": GptSpec(**SHAPE),
    "serial": GptSpec(**SHAPE, block="serial", positions="rotary", window=3),
    "llama": LlamaSpec(**GROUPED),
    "moe": MoeSpec(**GROUPED),
}


@pytest.fixture
def use_backend(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Let layers be compiled by another backend than torch's own."""

    def use(backend: Any) -> None:
        torch._dynamo.reset()
        monkeypatch.setattr(compiled_layers, "CompiledLayers", partial(CompiledLayers, backend=backend))

    return use


def make_batches(model: ModelSpec) -> list[MicroBatch]:
    ids = torch.randint(model.vocabulary, (2, 2, model.sequence), generator=torch.Generator().manual_seed(0))
    return [MicroBatch(tokens_BS=batch, targets_BS=batch) for batch in ids]


def train(
    model: ModelSpec,
    compilation: Compilation,
    recompute: Recompute = "none",
    schedule: ScheduleName | None = None,
    strategy: StrategyName = "zero1",
) -> torch.Tensor:
    """Return the loss and all gradients of the second step."""
    degrees = Degrees(num_batches=2, batch_size=2, schedule=schedule)
    comm = Comm(ALONE, Member(rank=0, plan=GroupPlan.of_layout(ALONE), process_groups={}, elapsed_s=0.0))
    trainer = ParallelTrainer(
        model,
        degrees,
        comm,
        POLICIES["none"],
        data_parallel=DataParallelSpec(strategy=strategy),
        recompute=recompute,
        compilation=compilation,
    )

    def descend() -> None:
        for shard in trainer.shards:
            shard.values_E.sub_(shard.gradients_E)

    trainer.run_step(0, make_batches(model), descend)
    loss = trainer.run_step(1, make_batches(model), lambda: None)
    return torch.cat([loss[None], *(shard.gradients_E for shard in trainer.shards)])


@pytest.mark.parametrize("name", MODELS)
def test_all_layers_and_micro_batches_run_through_one_graph(name: str, use_backend: Callable[[Any], None]) -> None:
    """The same but for rounding: products of a graph may lie elsewhere in memory, on which MKL's sums depend."""
    backend = CompileCounterWithBackend("eager")
    use_backend(backend)
    found = train(MODELS[name], "layers")
    assert backend.frame_count == (2 if name == "moe" else 1)  # a mixture's first layer begins its sums of routing
    assert_close(found, train(MODELS[name], "none"), **ROUNDING)


@pytest.mark.parametrize(("recompute", "schedule"), [("selective", None), ("full", None), ("full", "zb-h1")])
@pytest.mark.parametrize("name", MODELS)
def test_other_policies_go_with_it(
    name: str, recompute: Recompute, schedule: ScheduleName | None, use_backend: Callable[[Any], None]
) -> None:
    """The compiler then traces what lies between the operators: some graphs more, and the same values."""
    backend = CompileCounterWithBackend("eager")
    use_backend(backend)
    found = train(MODELS[name], "layers", recompute, schedule)
    assert 1 < backend.frame_count <= 16
    assert_close(found, train(MODELS[name], "none", recompute, schedule), **ROUNDING)


@pytest.mark.parametrize("strategy", ["ddp", "zero2", "zero3"])
@pytest.mark.parametrize("name", ["gpt", "moe"])
def test_weights_come_and_go_around_graphs(
    name: str, strategy: StrategyName, use_backend: Callable[[Any], None]
) -> None:
    """Also those that ZeRO-3 gathers for each pass, which autograd has saved; traced forward and backward."""
    use_backend("aot_eager")
    found = train(MODELS[name], "layers", strategy=strategy)
    assert_close(found, train(MODELS[name], "none", strategy=strategy), **ROUNDING)


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        *((name, ParallelLayout(tp=2)) for name in MODELS),
        ("gpt", ParallelLayout(cp=2)),
        ("llama", ParallelLayout(cp=2)),
        ("moe", ParallelLayout(dp=2, ep=2)),
    ],
)
def test_a_group_s_requests_are_those_without_a_graph(
    name: str, layout: ParallelLayout, use_backend: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names, sizes and order, of the first rank; what carries nothing gathers zeros here."""
    monkeypatch.setattr(torch.Tensor, "new_empty", torch.Tensor.new_zeros)
    use_backend("eager")
    requests = []
    for compilation in ("none", "layers"):
        with join_alone(layout, 0) as member:
            comm = Comm(layout, member)
            trainer = ParallelTrainer(
                MODELS[name],
                Degrees(layout=layout, num_batches=2, batch_size=2),
                comm,
                POLICIES["all"],
                compilation=compilation,
            )
            trainer.run_step(0, make_batches(MODELS[name]), lambda: None)
            trace = comm.trace()
            requests.append([trace.tag_N, *(getattr(trace, key).tolist() for key in ("operation_N", "bytes_N"))])
    assert requests[0] == requests[1]


def test_what_compiles_nothing_leaves_the_compiler_alone() -> None:
    """Its import takes a second of each rank's start, and makes a folder for its code."""
    code = "import sys, fabrictune.trainer_probe.training.loop; print('torch._inductor' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler on this machine")
def test_machine_code_computes_the_same() -> None:
    """By torch's own compiler, in double precision, to the rounding of joined operations."""
    torch._dynamo.reset()
    found, expected = (train(GptSpec(**SHAPE), compilation) for compilation in ("layers", "none"))
    assert torch.allclose(found, expected, rtol=0, atol=1e-12)


def test_a_machine_without_a_compiler_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything starts, with what to install."""
    recipe = Recipe(name="mine", compile="layers")
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(UnavailableError) as caught:
        check_device(recipe)
    assert str(caught.value) == (
        "mine: compile: no C++ compiler no-such-compiler on this machine\n"
        "  next: install g++, or name another one in CXX; or --set compile=none"
    )
    check_device(Recipe(name="mine"))
