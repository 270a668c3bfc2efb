"""A compiled law whose defaults fit the link."""

from dataclasses import replace

from fabrictune.cc.interface import CompiledLaw
from fabrictune.cc.link_rules import Link
from fabrictune.foundation.settings.quantities import format_setting, key_of


def fit_law(law: CompiledLaw, link: Link) -> CompiledLaw:
    """Return the law with the unset parameters that have a rule at what it gives, within their range."""
    settings = {name: law.params[name].item() for name in law.params.dtype.names or ()}
    params, derived = law.params.copy(), {}
    for parameter in law.unset:
        assert parameter.rule, "chosen by the compiler"
        value = min(max(parameter.rule.value(link, settings), parameter.low), parameter.high)
        params[parameter.name] = round(value) if parameter.dtype == "i8" else value
        derived[parameter.name] = f"{parameter.rule.text} ({parameter.rule.source})"
    return replace(law, params=params, unset=(), derived=derived)


def fitting_note(law: CompiledLaw) -> str:
    """Return which values were derived, and how; "" where none was."""
    if not law.derived:
        return ""
    names: dict[str, list[str]] = {}
    for name, rule in law.derived.items():
        names.setdefault(rule, []).append(f"{key_of(name)} {format_setting(name, law.params[name].item())}")
    return f"law {law.name}: " + "; ".join(f"{', '.join(shown)}: {rule}" for rule, shown in names.items())
