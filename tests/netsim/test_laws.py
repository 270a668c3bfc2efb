"""Every law of the project in both engines: interpreted in the plain one, compiled in the other."""

import numpy as np
import pytest

from fabrictune.cc.compiler import compile_law
from fabrictune.cc.laws import LAWS
from fabrictune.netsim.engine_inputs.inputs import make_engine_inputs
from fabrictune.netsim.packet import make_simulation
from fabrictune.netsim.reference.engine import ReferenceEngine
from tests.netsim.scenarios import random_scenario

SEEDS = (8, 32, 67, 85, 89, 111)  # marks and notifications, pauses, losses, faults, sprayed packets, slow hosts


@pytest.mark.parametrize("name", LAWS)
def test_a_law_does_the_same_in_both_engines(name: str) -> None:
    """To the last bit of its state: no handler gets another argument, or is called at another time."""
    law = compile_law(LAWS[name])
    num_events = 0
    for seed in SEEDS:
        scenario = random_scenario(seed)
        inputs = make_engine_inputs(
            scenario.network, scenario.traffic, law, scenario.config, seed=seed, probe=None, faults=scenario.faults
        )
        compiled, reference = make_simulation(inputs, law), ReferenceEngine(inputs, LAWS[name])
        compiled.advance(10**8)
        reference.run()
        num_events += compiled.num_events
        assert compiled.flow_records() == reference.flow_records(), f"seed {seed}"
        for column, truth in reference.transfer_columns().items():
            np.testing.assert_array_equal(compiled.transfer_columns()[column], truth, err_msg=f"seed {seed}, {column}")
    assert num_events > 1000
