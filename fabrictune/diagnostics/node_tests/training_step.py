"""A training step of a small GPT, repeated: its loss and gradients have the same bits each time, and on each node.

A node whose bits differ from those of its peers computes wrongly without saying so (silent data corruption). Bits may
differ between kinds of processors, GPUs and versions of torch, so nodes of one kind are compared.
"""

import hashlib
import platform
from pathlib import Path
from typing import TYPE_CHECKING

from fabrictune.diagnostics.results import NodeResult
from fabrictune.foundation.seeds import stream

if TYPE_CHECKING:
    import torch

_NUM_REPEATS = 3
_BATCH = 2


def measure_training_step(folder: Path) -> NodeResult:
    """Run the step several times, on the GPU where there is one."""
    import torch

    torch.set_num_threads(1)  # the order of sums depends on their number
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    digests = [_step(device) for _ in range(_NUM_REPEATS)]
    is_same = len(set(digests)) == 1
    return NodeResult(
        test="training step",
        digest=digests[0] if is_same else "",
        kind=f"{_kind_of(device)}, torch {torch.__version__}",
        faults=() if is_same else (f"{len(set(digests))} different results of {_NUM_REPEATS} equal training steps",),
    )


def _step(device: "torch.device") -> str:
    """Return a digest of loss and gradients."""
    import torch

    from fabrictune.trainer_probe.model.chunks import ChunkSpec
    from fabrictune.trainer_probe.model.forward import MicroBatch, run_chunk
    from fabrictune.trainer_probe.model.gpt import GptSpec
    from fabrictune.trainer_probe.model.initialization import make_weights
    from fabrictune.trainer_probe.model.operators import SingleProcess

    model = GptSpec(width=64, depth=2, num_heads=4, vocabulary=128, sequence=32)
    chunk = ChunkSpec(model=model)
    weights = {name: weight.float().to(device).requires_grad_() for name, weight in make_weights(chunk).items()}
    ids = stream(model.seed, "diagnose").integers(model.vocabulary, size=(_BATCH, model.sequence + 1))
    ids_BS = torch.from_numpy(ids).to(device)
    batch = MicroBatch(tokens_BS=ids_BS[:, :-1], targets_BS=ids_BS[:, 1:])
    loss = run_chunk(chunk, weights, SingleProcess(), batch, None, "")
    loss.backward()  # type: ignore[no-untyped-call]
    digest = hashlib.sha256(loss.detach().cpu().numpy().tobytes())
    for name in sorted(weights):
        gradient = weights[name].grad
        assert gradient is not None, "every weight takes part"
        digest.update(gradient.cpu().numpy().tobytes())
    return digest.hexdigest()


def _kind_of(device: "torch.device") -> str:
    import torch

    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
