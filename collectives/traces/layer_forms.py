"""Forms of parallelism of ASTRA-sim 1.0: which groups communicate in each pass, and in which order the passes run.

Source: astra-sim/astra-sim, branch ASTRA-sim-1.0, workload/Workload.cc: decode_involved_dimensions and the loops
iterate_*.
Left out: that most forms go on working while input gradients are communicated, and HYBRID_DLRM while its first layer's
all-to-all is; all wait for it here, as SimAI does.
"""

from collections.abc import Mapping
from dataclasses import dataclass

FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT = range(3)
PASSES = ("forward", "input gradient", "weight gradient")

Groups = tuple[str, str, str]  # of the passes, kinds of RankGroups or "" for none; `tp` is ranks next to one another


@dataclass(frozen=True, kw_only=True)
class Form:
    """A form of parallelism."""

    groups: Groups
    forward: tuple[int, ...] = (FORWARD,)  # passes through the layers in order
    backward: tuple[int, ...] = (INPUT_GRADIENT, WEIGHT_GRADIENT)  # and those through them in reverse
    has_degrees: bool = False  # in the first line of its files
    needs_group_size: bool = False  # ASTRA-sim takes it from the network's first dimension
    has_work: bool = True
    first_layer: Groups | None = None  # the groups of the first layer, where they are others
    skips_first_gradient: bool = False  # the first layer's input needs none


_TRANSFORMER = Form(groups=("tp", "tp", "dp"), has_degrees=True)
_WEIGHTS_FIRST = (WEIGHT_GRADIENT, INPUT_GRADIENT)
_DLRM = Form(groups=("", "", "all"), backward=_WEIGHTS_FIRST, first_layer=("all", "all", "all"))

SIMAI_FORM = "HYBRID_TRANSFORMER_FWD_IN_BCKWD"  # the one that AICB writes
CUSTOMIZED = "HYBRID_CUSTOMIZED"  # each line ends with the form of its layer
FORMS: Mapping[str, Form] = {
    SIMAI_FORM: _TRANSFORMER,
    "HYBRID_TRANSFORMER": _TRANSFORMER,
    "HYBRID_DLRM": _DLRM,
    "HYBRID_DLRM_ENHANCED": _DLRM,
    "HYBRID_DATA_MODEL": Form(groups=("tp", "tp", "dp"), needs_group_size=True, skips_first_gradient=True),
    "HYBRID_MODEL_DATA": Form(groups=("dp", "dp", "tp"), needs_group_size=True, skips_first_gradient=True),
    CUSTOMIZED: Form(groups=("", "", ""), needs_group_size=True, skips_first_gradient=True),
    "DATA": Form(groups=("", "", "all"), backward=_WEIGHTS_FIRST),
    "MODEL": Form(groups=("all", "all", ""), skips_first_gradient=True),
    "DISTRIBUTED_INFERENCE": Form(groups=("all", "", ""), backward=()),
    "MICRO": Form(groups=("", "", "all"), forward=(WEIGHT_GRADIENT,), backward=(), has_work=False),
}
