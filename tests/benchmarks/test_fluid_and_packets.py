"""The cross-check of both engines: its table is what intervals without audits are from, and new runs agree with it."""

import csv
import math
from collections import defaultdict

import pytest

from benchmarks import fluid_and_packets
from fabrictune.netsim.fluid.agreement import AGREEMENTS, Agreement, agreement_of

UNSEEN = 91  # a seed that the table does not have


def test_intervals_are_those_of_the_table() -> None:
    """Its least and its greatest factor of each law and class, rounded outwards."""
    factors = defaultdict(list)
    with fluid_and_packets.TABLE.open() as file:
        for row in csv.DictReader(file):
            factors[row["law"], float(row["held_share"]) > 0].append(float(row["factor"]))
    assert {
        place: Agreement(low=math.floor(min(of) * 1e3) / 1e3, high=math.ceil(max(of) * 1e3) / 1e3, num_runs=len(of))
        for place, of in factors.items()
    } == AGREEMENTS
    assert {law for law, _ in factors} == set(fluid_and_packets.LAWS)


@pytest.mark.parametrize("law", ["none", "swift"])
def test_makespans_of_unseen_runs_are_near(law: str) -> None:
    """Within 5 % where nobody was held, within 15 % where transfers were; seven of eight inside their intervals."""
    num_inside = 0
    for name, scenario in fluid_and_packets.random_scenarios(law, UNSEEN):
        row = fluid_and_packets.compare(name, scenario)
        is_held = row.held_share > 0
        assert row.factor == pytest.approx(1, abs=0.15 if is_held else 0.05), name
        agreement = agreement_of(law, is_held=is_held)
        assert agreement is not None
        num_inside += agreement.low <= row.factor <= agreement.high
    assert num_inside >= 7
