"""Records a law works on: `params`, its parameters as set, and `flow`, one queue pair's state.

Both are NumPy structured dtypes with C alignment, so that one array serves the interpreted law, the compiled law and
the C++ engine alike.
"""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.cc.interface import FLOW_HEADER, NEVER, UNLIMITED_CWND_BYTES, Parameter
from fabrictune.foundation.errors import LawError, Mistake, nearest_name

Record = NDArray[np.void]

# A C struct has at least one member, and so has the record of a law without parameters.
_PLACEHOLDER = ("unused", "f8")


def law_name(module: ModuleType) -> str:
    """Return the name users know a law by: the last part of its module's name."""
    return module.__name__.rpartition(".")[2]


def flow_dtype(module: ModuleType) -> np.dtype[np.void]:
    """Return the layout of one flow: the engine's header, then the law's STATE."""
    return np.dtype([*FLOW_HEADER, *module.STATE], align=True)


def params_record(module: ModuleType, settings: Mapping[str, float] | None = None) -> Record:
    """Return the law's parameters, shape (1,): the defaults, overridden by `settings`; raises LawError."""
    parameters: dict[str, Parameter] = {parameter.name: parameter for parameter in module.PARAMETERS}
    settings = settings or {}
    mistakes = [mistake for name, value in settings.items() if (mistake := _check_setting(module, name, value))]
    if mistakes:
        raise LawError(*mistakes)
    fields = [(parameter.name, parameter.dtype) for parameter in parameters.values()] or [_PLACEHOLDER]
    record = np.zeros(1, np.dtype(fields, align=True))
    for name, parameter in parameters.items():
        record[name] = settings.get(name, parameter.default)
    return record


def new_flow(
    dtype: np.dtype[np.void],
    *,
    line_rate_bps: float,
    base_rtt_ps: int = 10_000_000,
    mtu_bytes: int = 4096,
    num_hops: int = 4,
) -> Record:
    """Return one flow, shape (1,), as an engine makes it before `on_start`: at line rate, no window, no timer."""
    flow = np.zeros(1, dtype)
    flow["rate_bps"] = flow["line_rate_bps"] = line_rate_bps
    flow["cwnd_bytes"] = UNLIMITED_CWND_BYTES
    flow["deadline_ps"] = NEVER
    flow["base_rtt_ps"] = base_rtt_ps
    flow["mtu_bytes"] = mtu_bytes
    flow["num_hops"] = num_hops
    return flow


def _check_setting(module: ModuleType, name: str, value: Any) -> Mistake | None:
    parameters: dict[str, Parameter] = {parameter.name: parameter for parameter in module.PARAMETERS}
    where = f"law {law_name(module)}"
    if name not in parameters:
        return Mistake(
            where=where,
            found=f"unknown parameter {name!r}",
            allowed=", ".join(parameters) or "none: this law has no parameters",
            nearest=nearest_name(name, parameters),
        )
    parameter = parameters[name]
    is_whole = parameter.dtype.startswith("i")
    allowed = f"{'a whole number' if is_whole else 'a number'} from {parameter.low:g} to {parameter.high:g}"
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not parameter.low <= value <= parameter.high or (is_whole and value != int(value)):
        return Mistake(where=f"{where}: {name}", found=f"{value!r}", allowed=f"{allowed} ({parameter.meaning})")
    return None
