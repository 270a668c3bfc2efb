"""Choice of a law by a scenario: by name with the law's parameters as keys, or by a file of the user's.

`law: dcqcn`, `law: ./my_law.py`, or a mapping with `name` or `file`, and `parameters`. A law's `PARAMETERS` follow the
same convention as specs: `additive_increase_bps` is the key `additive_increase: 40 Mbps`.

A parameter with a rule has no default of its own here: what is not set follows the link (`fabrictune.cc.fitting`), or
is the paper's own number under `defaults: paper`.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from pydantic import ValidationError

from fabrictune.cc.interface import CompiledLaw, Parameter
from fabrictune.cc.laws import LAWS
from fabrictune.foundation.documents import Document
from fabrictune.foundation.errors import InputError, Mistake, ScenarioError
from fabrictune.foundation.extensions.kinds import is_path
from fabrictune.foundation.extensions.tables import Derived
from fabrictune.foundation.settings.binding import Choice, Chosen, bind
from fabrictune.foundation.settings.mistakes import to_mistakes
from fabrictune.foundation.settings.quantities import format_setting, key_of, suffix_of

Defaults = Literal["link", "paper"]
PAPER: Defaults = "paper"
DEFAULTS_HELP = "where a parameter with a rule is not set: `link`, what the rule gives; `paper`, the paper's own number"


@dataclass(frozen=True, kw_only=True)
class LawFile:
    """A law outside the project. Its parameters are known, and checked, once the file has been loaded."""

    file: Path = field(metadata={"help": "Python file; runs only with --trust-code"})
    parameters: dict[str, Any] = field(default_factory=dict, metadata={"help": "the law's own parameters"})
    defaults: Defaults = field(default="link", metadata={"help": DEFAULTS_HELP})


def parameters_spec(module: ModuleType) -> type:
    """Return a spec dataclass with one field for each parameter of a law, which checks its range.

    A parameter with a rule is None where it is not set.
    """
    fields = [_field_of(one) for one in module.PARAMETERS]

    def check_ranges(self: Any) -> None:
        mistakes = [
            Mistake(
                where=one.name,
                found=format_setting(one.name, value),
                allowed=f"{format_setting(one.name, one.low)} to {format_setting(one.name, one.high)} ({one.meaning})",
            )
            for one in module.PARAMETERS
            if (value := getattr(self, one.name)) is not None and not one.low <= value <= one.high
        ]
        if mistakes:
            raise InputError(*mistakes)

    name, namespace = f"{module.__name__} parameters", {"__post_init__": check_ranges}
    return dataclasses.make_dataclass(name, fields, namespace=namespace, frozen=True, kw_only=True)


def _field_of(one: Parameter) -> tuple[str, Any, Any]:
    kind: type = {"i8": int, "f8": float}[one.dtype]
    if one.rule is None:
        return one.name, kind, field(default=kind(one.default), metadata={"help": one.meaning})
    return one.name, kind | None, field(default=None, metadata={"help": _meaning(one)})


def _meaning(one: Parameter) -> str:
    if one.rule is None:
        return one.meaning
    return f"{one.meaning}; by default {one.rule.text}; the paper's own: {format_setting(one.name, one.default)}"


def settings_spec(module: ModuleType) -> type:
    """Return the spec of the mapping that chooses a law of the project."""
    parameters = parameters_spec(module)
    fields: list[tuple[str, Any, Any]] = [("parameters", parameters, field(default_factory=parameters))]
    if any(one.rule for one in module.PARAMETERS):
        fields.append(("defaults", Defaults, field(default="link", metadata={"help": DEFAULTS_HELP})))
    return dataclasses.make_dataclass(f"{module.__name__} settings", fields, frozen=True, kw_only=True)


def describe_parameters(module: ModuleType) -> list[dict[str, str]]:
    """Return each parameter of a law as a scenario writes it: key, default, range, meaning."""
    return [
        {
            "key": key_of(one.name),
            "default": "by the link" if one.rule else format_setting(one.name, one.default),
            "low": format_setting(one.name, one.low),
            "high": format_setting(one.name, one.high),
            "meaning": _meaning(one),
        }
        for one in module.PARAMETERS
    ]


def choice_from_text(text: str) -> dict[str, Any]:
    """Return the mapping of the short form `law: dcqcn` or `law: ./my_law.py`."""
    return {"file": text} if is_path(text) else {"name": text}


SPECS: Mapping[str, type] = Derived(LAWS, settings_spec, file=LawFile)
LAW_CHOICE = Choice("name", SPECS, choice_from_text)
NO_LAW = Chosen(name="none", spec=SPECS["none"]())


def compile_chosen(law: Chosen, *, document: Document | None, trust_code: bool) -> CompiledLaw:
    """Return the law ready for an engine; raises LawError, UntrustedCodeError, or ScenarioError for its parameters."""
    return resolve(law, document=document, trust_code=trust_code).compiled()


@dataclass(frozen=True, kw_only=True)
class ResolvedLaw:
    """A law's module, and the parameters that are set."""

    module: ModuleType
    parameters: Mapping[str, float]
    file_sha256: str = ""  # "" for a law of the project or of an installed package

    def compiled(self) -> CompiledLaw:
        """Return the law ready for an engine; raises LawError."""
        from fabrictune.cc.compiler import compile_law  # here, since it loads LLVM

        return replace(compile_law(self.module, self.parameters), file_sha256=self.file_sha256)


def resolve(law: Chosen, *, document: Document | None, trust_code: bool) -> ResolvedLaw:
    """Return the law with its parameters; raises LawError, UntrustedCodeError, ScenarioError."""
    if not isinstance(law.spec, LawFile):
        module = LAWS[law.name]
        parameters = _set(module, law.spec.parameters, getattr(law.spec, "defaults", "link"))
        return ResolvedLaw(module=module, parameters=parameters)
    file = law.spec.file
    extension = LAWS.load(file, trust_code=trust_code)
    module = extension.value
    try:
        given: Any = bind(parameters_spec(module), law.spec.parameters, folder=file.parent)
    except ValidationError as error:
        assert document, "parameters written in code are right"
        mistakes = to_mistakes(error, document, "law", "parameters")
        raise ScenarioError(*(_with_unit(mistake, law.spec.parameters) for mistake in mistakes)) from error
    return ResolvedLaw(module=module, parameters=_set(module, given, law.spec.defaults), file_sha256=extension.sha256)


def _set(module: ModuleType, parameters: Any, defaults: Defaults) -> dict[str, float]:
    """Return the parameters but for those that are left to their rules."""
    given = {name: value for name, value in dataclasses.asdict(parameters).items() if value is not None}
    papers_own = {one.name: one.default for one in module.PARAMETERS} if defaults == PAPER else {}
    return papers_own | given


def _with_unit(mistake: Mistake, parameters: Mapping[str, Any]) -> Mistake:
    """Return the mistake, with what to do where a value has a unit that its parameter's name lacks."""
    name = mistake.where.rpartition(".")[2]
    suffix = suffix_of(parameters.get(name)) if mistake.found.endswith("number is needed") else None
    if suffix is None:
        return mistake
    return replace(
        mistake, next_step=f"name the parameter {name}{suffix} in the law's file: the unit of a value ends its name"
    )
