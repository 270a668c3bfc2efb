"""Workloads as tables of transfers."""

import numpy as np
import pytest

from foundation.errors import InputError
from netsim.workloads import WORKLOADS, IncastSpec, PermutationSpec, make_incast, make_permutation
from tests.netsim.conftest import one_switch


def test_incast_sends_from_the_first_others_to_the_receiver() -> None:
    """NIC 1 receives, so 0, 2 and 3 send."""
    queue_pairs, traffic = make_incast(IncastSpec(senders=3, message_bytes=500, receiver=1), one_switch(5), 0)
    assert queue_pairs.source_nic_Q.tolist() == [0, 2, 3]
    assert queue_pairs.destination_nic_Q.tolist() == [1, 1, 1]
    assert traffic.bytes_N.tolist() == [500, 500, 500]
    assert traffic.qp_N.tolist() == [0, 1, 2]


def test_permutation_gives_everyone_one_partner_each_way() -> None:
    """No NIC sends to itself, whatever the seed."""
    for seed in range(20):
        queue_pairs, _ = make_permutation(PermutationSpec(message_bytes=1), one_switch(7), seed)
        assert queue_pairs.source_nic_Q.tolist() == list(range(7))
        assert sorted(queue_pairs.destination_nic_Q.tolist()) == list(range(7))
        assert (queue_pairs.destination_nic_Q != queue_pairs.source_nic_Q).all()


def test_permutation_follows_the_seed() -> None:
    """The same seed gives the same partners, another others."""
    spec, fabric = PermutationSpec(message_bytes=1), one_switch(16)
    first, again, other = (make_permutation(spec, fabric, seed)[0].destination_nic_Q for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            IncastSpec(senders=5, message_bytes=1),
            "incast.senders: 5 senders\n  allowed: 1 to 4, the fabric's other NICs",
        ),
        (
            IncastSpec(senders=0, message_bytes=1),
            "incast.senders: 0 senders\n  allowed: 1 to 4, the fabric's other NICs",
        ),
        (
            IncastSpec(senders=1, message_bytes=1, receiver=5),
            "incast.receiver: NIC 5\n  allowed: 0 to 4, the fabric's NICs",
        ),
        (IncastSpec(senders=1, message_bytes=-1), "message: -1 B\n  allowed: 0 B or more"),
    ],
)
def test_an_incast_that_does_not_fit_is_refused(spec: IncastSpec, message: str) -> None:
    """Five hosts stand under the switch."""
    with pytest.raises(InputError) as error:
        make_incast(spec, one_switch(5), 0)
    assert str(error.value) == message


def test_every_workload_has_its_spec_and_summary() -> None:
    """The table is what a scenario file chooses from."""
    assert {name: workload.spec for name, workload in WORKLOADS.items()} == {
        "incast": IncastSpec,
        "permutation": PermutationSpec,
    }
