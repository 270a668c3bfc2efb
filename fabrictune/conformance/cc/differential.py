"""Every law of the table, interpreted and compiled, gives the same bits."""

from functools import partial
from types import ModuleType

from fabrictune.cc.laws import LAWS
from fabrictune.foundation.cases import Case, exactly


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return tuple(
        Case(
            name=f"cc.interpreted-equals-compiled.{name}",
            source="cc/interface.py: interpreted and compiled runs agree bit for bit",
            unit="of 5,000 random events that differ",
            run=partial(_count_mismatches, module),
            **exactly(0),
        )
        for name, module in LAWS.items()
    )


def _count_mismatches(module: ModuleType) -> float:
    from fabrictune.cc.differential import count_mismatches

    return count_mismatches(module, num_events=5_000, seed=1)
