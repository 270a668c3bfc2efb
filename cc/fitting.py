"""A compiled law whose defaults fit the link."""

from dataclasses import replace

from fabrictune.cc.interface import CompiledLaw
from fabrictune.cc.link_rules import Link
from fabrictune.foundation.settings.quantities import format_setting, key_of

FAR = 1.5  # times, or a part, of what a rule gives; judgement: below it, goodput hardly changes


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


def far_settings_note(law: CompiledLaw, link: Link) -> str:
    """Return which set parameters are FAR from what their rule gives on this link; "" where none is.

    A law works with any of them, but not as it does in its paper: HPCC's T, for one, has no effect below a flow's own
    round trip, and above it averages over several.
    """
    settings = {name: law.params[name].item() for name in law.params.dtype.names or ()}
    far = []
    for parameter in law.chosen:
        assert parameter.rule, "chosen by the compiler"
        value, fitting = settings[parameter.name], parameter.rule.value(link, settings)
        if not fitting / FAR <= value <= fitting * FAR:
            is_whole = parameter.dtype == "i8"
            shown = (format_setting(parameter.name, one) for one in (value, round(fitting) if is_whole else fitting))
            far.append(f"{key_of(parameter.name)} {' is set, '.join(shown)} fits the link ({parameter.rule.text})")
    return f"law {law.name}: {'; '.join(far)}" if far else ""


def variant_note(law: CompiledLaw) -> str:
    """Return which form of its algorithm the law is; "" where there is one."""
    return f"law {law.name}: {law.variant}" if law.variant else ""


def fitting_note(law: CompiledLaw) -> str:
    """Return which values were derived, and how; "" where none was."""
    if not law.derived:
        return ""
    names: dict[str, list[str]] = {}
    for name, rule in law.derived.items():
        names.setdefault(rule, []).append(f"{key_of(name)} {format_setting(name, law.params[name].item())}")
    return f"law {law.name}: " + "; ".join(f"{', '.join(shown)}: {rule}" for rule, shown in names.items())
