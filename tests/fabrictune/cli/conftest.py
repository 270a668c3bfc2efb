"""Every JSON value that a command prints in these tests is searched for numbers without a unit."""

import json
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from fabrictune.cli.framework import output

# A key ends in its unit; `_low`, `_high` and a percentile after it are ends and tails of an estimate of that quantity.
UNIT = re.compile(
    r"(^|_)(ps|ns|us|ms|s|bps|bytes|packets|mm|ppm|flops|flops_per_gpu|tokens_per_s"
    r"|fraction|ratio|factor|probability|index|exponent|times)(_p\d+)?(_low|_high)?$"
)
COUNT = re.compile(r"^(num|is|has|knows)_|_id$")
# Numbers without a dimension: counts, and what something is known by.
DIMENSIONLESS = frozenset(
    [
        "choice",
        "gpu",  # of a host
        "number",  # of a request in its group
        "pid",
        "cnp",  # a priority
        "destination_qpn",
        "destination_rail",
        "destination_ranks",
        "source_qpn",
        "source_rail",
        "source_ranks",
        "source_port",
        "queue_pair",
        "transfer",
        "slowdown",
        "loss",
        "loss_scale",
        "gradient_norm",
        "learning_rate",
        "rounds",
        "sequence_length",
        "checksum",
        "correlation",
        "point",
        "tier",
        "rank",
        "place",
        "priority",
        "round",
        "step",
        "seed",
        "weight",
        "exit_code",
        "generation",
        "outage",
        "hosts",
        "switches",
        "nics",
        "links",
        "nodes",
        "ranks",
        "group",
        "groups",
        "last_rank",
        "most_loading_rank",
        "operations",
        "requests",
        "requests_expected",
        "extrapolated_ranks",
        "max_probes",
        "queue_pairs",
        "transfers",
        "retries",
        "seeds",
        "tp",
        "dp",
        "pp",
        "traffic.expansion.qps_per_connection",
    ]
)


def unitless_numbers(value: Any, key: str = "", owner: Any = None) -> Iterator[str]:
    """Yield the key of each number whose key, or whose object, does not say its unit."""
    if isinstance(value, dict):
        for name, entry in value.items():
            inherits = bool(UNIT.search(key)) and not isinstance(entry, dict | list)
            yield from () if inherits else unitless_numbers(entry, name, value)
    elif isinstance(value, list):
        for entry in value:
            yield from unitless_numbers(entry, key, owner)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        says = isinstance(owner, dict) and ("unit" in owner or bool(UNIT.search(str(owner.get("metric", "")))))
        if not (says or UNIT.search(key) or COUNT.search(key) or key in DIMENSIONLESS):
            yield key


@pytest.fixture(autouse=True)
def _numbers_have_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where a command prints a number without its unit."""

    def dumps(value: Any, **options: Any) -> str:
        missing = sorted(set(unitless_numbers(value)))
        assert not missing, f"printed without a unit: {missing}"
        return json.dumps(value, **options)

    monkeypatch.setattr(output, "json", SimpleNamespace(dumps=dumps))
