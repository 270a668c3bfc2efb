"""Compiler of laws: handlers as C functions, from the cache or from Numba.

What Numba generates is an object file. It is kept under the fingerprint of all that it came from, so that a law takes a
second once after each change, and no Numba at all afterwards.
"""

import inspect
from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType

import numpy as np

from fabrictune.cc.checked_law import CheckedLaw, checked_law
from fabrictune.cc.code_cache import keep_code, kept_code
from fabrictune.cc.fingerprint import fingerprint
from fabrictune.cc.flow_state import flow_dtype, law_name, params_record
from fabrictune.cc.interface import CompiledLaw, Parameter
from fabrictune.cc.law_rules import reads_marks, reads_telemetry, require_law
from fabrictune.cc.link_rules import RED
from fabrictune.cc.linker import link


def compile_law(module: ModuleType, settings: Mapping[str, float] | None = None) -> CompiledLaw:
    """Return the law ready for an engine, its parameters at their defaults but for `settings`.

    Defaults are the papers' own numbers; `fit_law` gives those that follow the link.
    Raises LawError for a module that is no law, an unknown or impossible setting, and for Python that does not compile.
    """
    require_law(module)
    params = params_record(module, settings)
    flow = flow_dtype(module)
    checked = checked_law(module)
    linked = link(_object_file(checked, params.dtype, flow), list(checked.handlers))
    return CompiledLaw(
        name=law_name(module),
        source=inspect.getsource(module),
        handler_address=linked.address,
        params=params,
        flow_dtype=flow,
        uses_telemetry=reads_telemetry(module),
        reads_marks=reads_marks(module),
        keep_alive=linked.owner,
        places=checked.places,
        unset=_ruled(module, settings, is_set=False),
        chosen=_ruled(module, settings, is_set=True),
        marking=getattr(module, "MARKING", RED),
        variant=getattr(module, "VARIANT", ""),
    )


def with_settings(law: CompiledLaw, module: ModuleType, settings: Mapping[str, float] | None = None) -> CompiledLaw:
    """Return a law that was compiled from `module` with other settings, which needs no compiling; raises LawError."""
    unset, chosen = (_ruled(module, settings, is_set=is_set) for is_set in (False, True))
    return replace(law, params=params_record(module, settings), unset=unset, chosen=chosen, derived={})


def _ruled(module: ModuleType, settings: Mapping[str, float] | None, *, is_set: bool) -> tuple[Parameter, ...]:
    """Return the parameters with a rule that are set, or those that are not."""
    given = settings or {}
    return tuple(one for one in module.PARAMETERS if one.rule is not None and (one.name in given) == is_set)


def _object_file(law: CheckedLaw, params: np.dtype[np.void], flow: np.dtype[np.void]) -> bytes:
    key = fingerprint(law, params, flow)
    kept = kept_code(key) if key else None
    if kept is not None:
        return kept
    from fabrictune.cc.codegen import generate  # here, since it imports numba, which takes as long as all the rest

    code = generate(law, params, flow)
    if key and code.is_self_contained:
        keep_code(key, code.object_file)
    return code.object_file
