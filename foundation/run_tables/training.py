"""Tables of training runs, ablations and plans."""

from fabrictune.foundation.layout import AXES
from fabrictune.foundation.run_tables.schema import Column, Table, flag, number, text, whole

_STEP: tuple[Column, ...] = (
    whole("step", "number of the step"),
    number("loss", "mean over the step's tokens; -1 not finite"),
    number("gradient_norm", "norm over all parameters, before clipping; -1 not finite"),
    number("learning_rate", "learning rate"),
    flag("is_skipped", "whether the step is left out, because gradients are not finite"),
    whole("elapsed_ns", "time of the step"),
    number("tokens_per_s", "throughput", unit="tokens/s"),
    number("mfu_fraction", "model FLOPs utilisation; -1 where no peak is known"),
    *(whole(f"exposed_{axis}_ns", f"mean wait of a rank for {axis} communication") for axis in AXES),
)
_PLACE = whole("place", "place in the pipeline")

TABLES = (
    Table(name="training", row="a step", kinds=("train run",), columns=_STEP),
    Table(
        name="ablation_steps",
        row="a step of the ablation: the recipe with one more technique",
        kinds=("train ablate",),
        columns=(
            text("technique", "name of the step, by its technique"),
            text("base", "step that it adds to; empty for the first"),
            whole("rounds", "rounds finished", unit="rounds"),
            number("tokens_per_s", "median throughput over rounds", unit="tokens/s"),
            number("tokens_per_s_low", "first quartile of the throughput", unit="tokens/s"),
            number("tokens_per_s_high", "third quartile of the throughput", unit="tokens/s"),
            number("mfu_fraction", "median model FLOPs utilisation; -1 where no peak is known"),
            number("gain_fraction", "median gain in throughput over the base; 0 for the first"),
            number("gain_fraction_low", "first quartile of the gain"),
            number("gain_fraction_high", "third quartile of the gain"),
            *(whole(f"exposed_{axis}_ns", f"median exposed {axis} communication of a step") for axis in AXES),
        ),
    ),
    Table(
        name="ablation_trials",
        row="a counted training step of a trial: one ablation step in one round",
        kinds=("train ablate",),
        columns=(whole("round", "number of the round"), text("technique", "name of the ablation step"), *_STEP),
    ),
    Table(
        name="volumes",
        row="the requests of one operation on one axis that a GPU makes in a step",
        kinds=("train plan",),
        columns=(
            _PLACE,
            text("axis", "`tp`, `dp` or `pp`"),
            text("operation", "name of the operation"),
            whole("num_requests", "requests", unit="requests"),
            whole("buffer_bytes", "size of their buffers as nccl-tests counts it"),
            whole("sent_bytes", "bytes that leave the GPU"),
            whole("duration_ps", "time they take one after another, at best"),
        ),
    ),
    Table(
        name="memory",
        row="the memory of a GPU",
        kinds=("train plan",),
        columns=(
            _PLACE,
            whole("flops", "floating-point operations of a step", unit="operations"),
            whole("weights_bytes", "weights"),
            whole("gradients_bytes", "gradients"),
            whole("optimizer_bytes", "its share of the optimizer's state"),
            whole("activations_bytes", "activations, at most"),
        ),
    ),
    Table(
        name="step_parts",
        row="a part of the planned step",
        kinds=("train plan",),
        columns=(
            text("part", "`work`, `bubble`, `exposed` with an axis, or `step` for the whole"),
            whole("duration_ps", "its time"),
        ),
    ),
)
