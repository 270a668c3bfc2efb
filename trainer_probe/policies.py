"""Overlap policies: the axes whose communication runs beside work; requests of the others are waited for at once.

A policy moves waits and nothing else: the same requests carry the same bytes and the same additions are made in the
same order, so parameters are equal to the last bit under every policy.

Source: MegaScale (NSDI'24), section 3.2 and Table 3, which adds the axes in this order.
"""

from dataclasses import dataclass
from typing import Literal

from fabrictune.foundation.layout import AXES, Axis

Compilation = Literal["none", "layers"]  # what torch compiles
Recompute = Literal["none", "selective", "full"]  # activations computed again in the backward pass


@dataclass(frozen=True, kw_only=True)
class OverlapPolicy:
    """The axes whose communication overlaps with work."""

    name: str
    axes: frozenset[Axis]

    def overlaps(self, axis: Axis) -> bool:
        """Return whether the requests of an axis run beside work."""
        return axis in self.axes


POLICIES: dict[str, OverlapPolicy] = {
    "none": OverlapPolicy(name="none", axes=frozenset()),
    "tp": OverlapPolicy(name="tp", axes=frozenset({"tp"})),
    "cp": OverlapPolicy(name="cp", axes=frozenset({"cp"})),
    "pp": OverlapPolicy(name="pp", axes=frozenset({"pp"})),
    "dp": OverlapPolicy(name="dp", axes=frozenset({"dp"})),
    "ep": OverlapPolicy(name="ep", axes=frozenset({"ep"})),
    "tp+pp": OverlapPolicy(name="tp+pp", axes=frozenset({"tp", "pp"})),
    "tp+dp": OverlapPolicy(name="tp+dp", axes=frozenset({"tp", "dp"})),
    "pp+dp": OverlapPolicy(name="pp+dp", axes=frozenset({"pp", "dp"})),
    "all": OverlapPolicy(name="all", axes=frozenset(AXES)),
}
