"""Choice of a law by a scenario: by name with the law's parameters as keys, or by a file of the user's.

`law: dcqcn`, `law: ./my_law.py`, or a mapping with `name` or `file` and `parameters`. A law's `PARAMETERS` follow the
same convention as specs: `additive_increase_bps` is the key `additive_increase: 40 Mbps`.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from fabrictune.cc.interface import CompiledLaw
from fabrictune.cc.laws import LAWS, is_path, load_law
from fabrictune.cc.tuning import tuning_note
from fabrictune.foundation.documents import Document
from fabrictune.foundation.errors import InputError, Mistake, ScenarioError
from fabrictune.foundation.settings.binding import Choice, Chosen, bind
from fabrictune.foundation.settings.mistakes import to_mistakes
from fabrictune.foundation.settings.quantities import format_setting, key_of, suffix_of


@dataclass(frozen=True, kw_only=True)
class LawFile:
    """A law outside the project. Its parameters are known, and checked, once the file has been loaded."""

    file: Path = field(metadata={"help": "Python file; runs only with --trust-code"})
    parameters: dict[str, Any] = field(default_factory=dict, metadata={"help": "the law's own parameters"})


def parameters_spec(module: ModuleType) -> type:
    """Return a spec dataclass with one field for each parameter of a law, which checks its range."""
    types = {"i8": int, "f8": float}
    fields = [
        (one.name, types[one.dtype], field(default=types[one.dtype](one.default), metadata={"help": one.meaning}))
        for one in module.PARAMETERS
    ]

    def check_ranges(self: Any) -> None:
        mistakes = [
            Mistake(
                where=one.name,
                found=format_setting(one.name, getattr(self, one.name)),
                allowed=f"{format_setting(one.name, one.low)} to {format_setting(one.name, one.high)} ({one.meaning})",
            )
            for one in module.PARAMETERS
            if not one.low <= getattr(self, one.name) <= one.high
        ]
        if mistakes:
            raise InputError(*mistakes)

    name, namespace = f"{module.__name__} parameters", {"__post_init__": check_ranges}
    return dataclasses.make_dataclass(name, fields, namespace=namespace, frozen=True, kw_only=True)


def settings_spec(module: ModuleType) -> type:
    """Return the spec of the mapping that chooses a law of the project."""
    parameters = parameters_spec(module)
    fields = [("parameters", parameters, field(default_factory=parameters))]
    return dataclasses.make_dataclass(f"{module.__name__} settings", fields, frozen=True, kw_only=True)


def describe_parameters(module: ModuleType) -> list[dict[str, str]]:
    """Return each parameter of a law as a scenario writes it: key, default, range, meaning."""
    return [
        {
            "key": key_of(one.name),
            "default": format_setting(one.name, one.default),
            "low": format_setting(one.name, one.low),
            "high": format_setting(one.name, one.high),
            "meaning": one.meaning,
        }
        for one in module.PARAMETERS
    ]


def choice_from_text(text: str) -> dict[str, Any]:
    """Return the mapping of the short form `law: dcqcn` or `law: ./my_law.py`."""
    return {"file": text} if is_path(text) else {"name": text}


SPECS: Mapping[str, type] = {**{name: settings_spec(module) for name, module in LAWS.items()}, "file": LawFile}
LAW_CHOICE = Choice("name", SPECS, choice_from_text)
NO_LAW = Chosen(name="none", spec=SPECS["none"]())


def compile_chosen(law: Chosen, *, document: Document | None, trust_code: bool) -> CompiledLaw:
    """Return the law ready for an engine; raises LawError, UntrustedCodeError, or ScenarioError for its parameters."""
    from fabrictune.cc.compiler import compile_law  # here, since it loads LLVM

    module, parameters = resolve(law, document=document, trust_code=trust_code)
    return compile_law(module, parameters)


def resolve(law: Chosen, *, document: Document | None, trust_code: bool) -> tuple[ModuleType, dict[str, float]]:
    """Return the law's module and its parameters; raises LawError, UntrustedCodeError, ScenarioError."""
    if not isinstance(law.spec, LawFile):
        return LAWS[law.name], dataclasses.asdict(law.spec.parameters)
    file = law.spec.file
    module = load_law(str(file) if is_path(str(file)) else f"./{file}", trust_code=trust_code)
    try:
        parameters: Any = bind(parameters_spec(module), law.spec.parameters, folder=file.parent)
    except ValidationError as error:
        assert document, "parameters written in code are right"
        mistakes = to_mistakes(error, document, "law", "parameters")
        raise ScenarioError(*(_with_unit(mistake, law.spec.parameters) for mistake in mistakes)) from error
    return module, dataclasses.asdict(parameters)


def tuning_notes(law: Chosen, slowest_nic_bps: float) -> tuple[str, ...]:
    """Return what a law of the project says of its defaults on NICs of this rate."""
    if isinstance(law.spec, LawFile):
        return ()
    note = tuning_note(law.name, LAWS[law.name], dataclasses.asdict(law.spec.parameters), slowest_nic_bps)
    return (note,) if note else ()


def _with_unit(mistake: Mistake, parameters: Mapping[str, Any]) -> Mistake:
    """Return the mistake, with what to do where a value has a unit that its parameter's name lacks."""
    name = mistake.where.rpartition(".")[2]
    suffix = suffix_of(parameters.get(name)) if mistake.found.endswith("number is needed") else None
    if suffix is None:
        return mistake
    return replace(
        mistake, next_step=f"name the parameter {name}{suffix} in the law's file: the unit of a value ends its name"
    )
