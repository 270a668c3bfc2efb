"""The same facts come out of each vendor's files and tools; golden files hold them word for word."""

import json
from pathlib import Path

import pytest

from fabrictune.fleet.collect.node_reading import parse_reading
from fabrictune.fleet.facts.derived import fleet_facts
from fabrictune.fleet.facts.fact import text_of

GOLDEN = Path(__file__).parents[2] / "golden" / "fleet" / "nodes"
NODES = ("mlx5", "bnxt_re", "irdma", "rxe")


@pytest.mark.parametrize("vendor", NODES)
def test_facts_of_a_vendor(vendor: str) -> None:
    """What a host of each RDMA driver says, as `fleet collect` keeps it, and the facts in it."""
    file = GOLDEN / f"{vendor}.json"
    facts = fleet_facts([parse_reading(file.read_bytes(), file)])
    assert facts.unread == ()
    found = {f"{fact.device} {fact.name}".strip(): text_of(fact.value) for fact in facts.facts}
    assert found == json.loads((GOLDEN / f"{vendor}.facts").read_text())
