"""Laws of congestion control, as records describe them."""

from typing import Any

from fabrictune.cc.interface import CompiledLaw


def describe_law(law: CompiledLaw) -> dict[str, Any]:
    """Return what `run.json` says of a law: its name, source and parameters, and what it derives from them."""
    return {
        "name": law.name,
        "source": law.source,
        "parameters": {name: law.params[name].item() for name in law.params.dtype.names or ()},
        "derived": dict(law.derived),
        **({"variant": law.variant} if law.variant else {}),
    }
