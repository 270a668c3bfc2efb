"""Tables of training runs, ablations and plans."""

from fabrictune.foundation.layout import AXES, ParallelLayout
from fabrictune.foundation.run_tables.schema import (
    Column,
    TableSchema,
    flag_column,
    integer_column,
    number_column,
    text_column,
)

_ALWAYS = ParallelLayout().axes  # of the others only those that a layout has


def _exposed_columns(meaning: str) -> tuple[Column, ...]:
    """Return a column for each axis; those of axes that not every layout has are optional."""
    return tuple(
        integer_column(f"exposed_{axis}_ns", meaning.format(axis=axis), is_optional=axis not in _ALWAYS)
        for axis in sorted(AXES, key=lambda axis: axis not in _ALWAYS)
    )


_STEP: tuple[Column, ...] = (
    integer_column("step", "number of the step"),
    number_column("loss", "mean over the step's tokens; -1 not finite"),
    number_column("gradient_norm", "norm over all parameters, before clipping; -1 not finite"),
    number_column("learning_rate", "learning rate"),
    number_column("loss_scale", "factor of the loss in half precision; 1 where the precision needs none"),
    flag_column("is_skipped", "whether the step is left out, because gradients are not finite"),
    integer_column("elapsed_ns", "time of the step"),
    number_column("tokens_per_s", "throughput", unit="tokens/s"),
    number_column("mfu_fraction", "model FLOPs utilisation of the hardware's peak; -1 where no peak is known"),
    *_exposed_columns("mean wait of a rank's work for {axis} communication; on a GPU by events of its stream"),
    number_column(
        "balance_loss",
        "mean over tokens and layers of a mixture of experts, without its coefficient: 1 balanced; -1 not finite",
        is_optional=True,
    ),
    number_column("dropped_fraction", "choices beyond their expert's capacity, of all", is_optional=True),
)
_PLACE = integer_column("place", "place in the pipeline")

TABLES = (
    TableSchema(name="training", row="a step", kinds=("train run",), columns=_STEP),
    TableSchema(
        name="rank_stretches",
        row="a stretch of a rank's last traced step, one after another; whole ranks, the first, to 50,000 rows",
        kinds=("train run",),
        columns=(
            integer_column("step", "number of the step"),
            integer_column("rank", "the rank"),
            text_column("axis", "`work`, or the axis of the request that the rank's work waits for"),
            text_column("tag", "the trace's name of the request; empty for work"),
            integer_column("start_ns", "its begin, from the origin of the trace"),
            integer_column("duration_ns", "its duration"),
        ),
    ),
    TableSchema(
        name="ablation_steps",
        row="a step of the ablation: the recipe with one more technique",
        kinds=("train ablate",),
        columns=(
            text_column("technique", "name of the step, by its technique"),
            text_column("base", "step that it adds to; empty for the first"),
            integer_column("rounds", "rounds finished", unit="rounds"),
            number_column("tokens_per_s", "median throughput over rounds", unit="tokens/s"),
            number_column("tokens_per_s_low", "first quartile of the throughput", unit="tokens/s"),
            number_column("tokens_per_s_high", "third quartile of the throughput", unit="tokens/s"),
            number_column(
                "mfu_fraction", "median model FLOPs utilisation of the hardware's peak; -1 where no peak is known"
            ),
            number_column("gain_fraction", "median gain in throughput over the base; 0 for the first"),
            number_column("gain_fraction_low", "first quartile of the gain"),
            number_column("gain_fraction_high", "third quartile of the gain"),
            *_exposed_columns("median exposed {axis} communication of a step"),
        ),
    ),
    TableSchema(
        name="ablation_trials",
        row="a counted training step of a trial: one ablation step in one round",
        kinds=("train ablate",),
        columns=(
            integer_column("round", "number of the round"),
            text_column("technique", "name of the ablation step"),
            *_STEP,
        ),
    ),
    TableSchema(
        name="volumes",
        row="the requests of one operation on one axis that a GPU makes in a step",
        kinds=("train plan",),
        columns=(
            _PLACE,
            text_column("axis", ", ".join(f"`{axis}`" for axis in AXES)),
            text_column("operation", "name of the operation"),
            integer_column("num_requests", "requests", unit="requests"),
            integer_column("buffer_bytes", "size of their buffers as nccl-tests counts it"),
            integer_column("sent_bytes", "bytes that leave the GPU"),
            integer_column("duration_ps", "time they take one after another, at best"),
        ),
    ),
    TableSchema(
        name="memory",
        row="the memory of a GPU",
        kinds=("train plan",),
        columns=(
            _PLACE,
            integer_column("flops", "floating-point operations of a step", unit="operations"),
            integer_column("weights_bytes", "weights"),
            integer_column("gradients_bytes", "gradients"),
            integer_column("optimizer_bytes", "its share of the optimizer's state"),
            integer_column("activations_bytes", "activations, at most"),
        ),
    ),
    TableSchema(
        name="step_parts",
        row="a part of the planned step",
        kinds=("train plan",),
        columns=(
            text_column(
                "part",
                "`products` or `memory traffic` of the busiest place, `bubble`, `added by` an axis alone, or `step` "
                "for the whole",
            ),
            integer_column("duration_ps", "its time"),
        ),
    ),
    TableSchema(
        name="step_causes",
        row="a cause of time on the critical path of the predicted step, at one place",
        kinds=("validate predict",),
        columns=(
            _PLACE,
            text_column(
                "cause",
                "`products`, `attention`, `memory`, `launches`, `optimizer`, `work beside collectives`, an axis whose "
                "requests are waited for, or `synchronisation`",
            ),
            integer_column("duration_ps", "its time; all of them are the step without slow hosts"),
        ),
    ),
    TableSchema(
        name="step_values",
        row="a value of the hardware profile",
        kinds=("validate predict",),
        columns=(
            text_column("key", "its key"),
            number_column(
                "elasticity_fraction", "relative change of the step for a value twice as large, to first order"
            ),
            number_column("uncertainty_fraction", "of the value, half of a 90 % interval"),
            text_column("source", "where it is from"),
        ),
    ),
    TableSchema(
        name="step_changes",
        row="a change of the recipe or the hardware",
        kinds=("validate predict",),
        columns=(
            text_column("change", "a value of the profile a tenth better, or a key of the recipe"),
            integer_column("step_ps", "the step with it"),
            number_column("gain_fraction", "share of the step that it saves; negative where it costs"),
            number_column("gain_fraction_low", "lower end of the 90 % interval of the gain"),
            number_column("gain_fraction_high", "upper end of the 90 % interval of the gain"),
        ),
    ),
    TableSchema(
        name="schedules",
        row="a pipeline schedule that the degrees allow",
        kinds=("train plan",),
        columns=(
            text_column("schedule", "its name"),
            integer_column("num_chunks", "model chunks of a pipeline rank", unit="chunks"),
            number_column("bubble_fraction", "idle over busy time, in closed form"),
            integer_column("activations_bytes", "activations of the GPU that keeps most"),
        ),
    ),
    TableSchema(
        name="step_operations",
        row="an operation in a part of the planned step of a GPU",
        kinds=("train plan",),
        columns=(
            _PLACE,
            text_column(
                "part",
                "`forward`, `backward`, `weights` (their gradients' own passes), `optimizer` or `rest`",
            ),
            text_column("operation", "torch's name of the operation"),
            text_column("bound", "what its time comes from: `products`, `attention`, `memory` or `launch`"),
            integer_column("num_calls", "calls in a step", unit="calls"),
            integer_column("flops", "floating-point operations", unit="operations"),
            integer_column("bytes", "bytes read from and written to the GPU's memory"),
            integer_column("duration_ps", "time of all calls, by the roofline"),
        ),
    ),
)
