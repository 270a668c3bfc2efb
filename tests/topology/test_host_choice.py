"""Hosts of a job by names, numbers, lists and switches."""

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.host_choice import choose_hosts


@pytest.mark.parametrize(
    ("names", "hosts"),
    [
        ([], list(range(16))),
        (["host3", "host1", "3"], [1, 3]),
        (["host[0-1,9]"], [0, 1, 9]),
        (["tor1-5"], [4, 5, 6, 7]),  # the switch of rail 5 of the second set
        (["15"], [15]),
    ],
)
def test_hosts_are_known_by_any_of_their_names(small_clos: Fabric, names: list[str], hosts: list[int]) -> None:
    """Sixteen hosts in sets of four, eight rails: each once, in the fabric's order."""
    assert choose_hosts(small_clos, names) == hosts


def test_a_first_host_drops_those_before_it(small_clos: Fabric) -> None:
    """Alone it is the rest of the fabric; with a list, what is left of that."""
    assert choose_hosts(small_clos, [], first_host="host13") == [13, 14, 15]
    assert choose_hosts(small_clos, ["host[10-14]"], first_host="13") == [13, 14]


def test_what_is_no_host_is_refused_with_the_nearest(small_clos: Fabric) -> None:
    """All that is wrong at once: a misspelt name, a number too large, a switch without hosts."""
    with pytest.raises(InputError) as caught:
        choose_hosts(small_clos, ["hots3", "16", "agg0-0"])
    found = [mistake.found for mistake in caught.value.mistakes]
    assert found == ["unknown host 'hots3'", "unknown host '16'", "'agg0-0', a switch that no host is cabled to"]
    assert caught.value.mistakes[0].nearest == "host3"
