"""The link that defaults fit, and marking that fits it."""

from dataclasses import replace

import pytest

from fabrictune.cc.dctcp import MARKING
from fabrictune.cc.link_rules import RED, Link
from fabrictune.foundation.errors import InputError
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.queues import PriorityConfig, QueuesConfig
from fabrictune.netsim.config.switch import EcnConfig, PfcConfig
from fabrictune.netsim.engine_inputs.link import fit_marking, link_of, marking_note
from tests.netsim.conftest import network_of, one_switch

STAR = network_of(one_switch(3), [(0, 2), (1, 2)])
CONFIG = PacketConfig()


def star(rate_gbps: int) -> Link:
    link = link_of(network_of(one_switch(3, rate_gbps * 10**9), [(0, 2)]), CONFIG)
    assert link
    return link


def test_a_link_is_the_slowest_nic_and_the_longest_unloaded_round_trip() -> None:
    """4,178 B twice and 86 B twice at 80 ps a byte, and four cables of 10 ns; xoff less a frame is 961,916 B."""
    assert link_of(STAR, CONFIG) == Link(
        rate_bps=100e9,
        base_rtt_ps=2 * (4178 + 86) * 80 + 4 * 10_000,
        num_hops=2,
        mtu_bytes=4096,
        queue_limit_bytes=1_000_000 - 33_906 - 4178,
    )


def test_without_a_flow_over_the_fabric_there_is_no_link() -> None:
    """There is nothing for the defaults to fit."""
    (epoch,) = STAR.epochs
    empty = replace(STAR, epochs=(replace(epoch, port_QDH=epoch.port_QDH[:0]),))
    assert link_of(empty, CONFIG) is None


@pytest.mark.parametrize(("rate_gbps", "curve"), [(25, (100_000, 400_000, 0.2)), (100, (400_000, 1_600_000, 0.2))])
def test_marking_follows_the_nics_rate(rate_gbps: int, curve: tuple[int, int, float]) -> None:
    """HPCC's table; the 100 Gbps row is what a configuration without a scenario has."""
    assert fit_marking(CONFIG, RED, star(rate_gbps)).ecn.curve == curve
    assert EcnConfig().curve == (400_000, 1_600_000, 0.2)


def test_marks_begin_at_half_of_what_a_port_holds_at_most() -> None:
    """At 400 Gbps 1.6 MB are more than that; kmax stays four times kmin."""
    link = star(400)
    fitted = fit_marking(CONFIG, RED, link).ecn
    assert fitted.kmin_bytes == round(link.queue_limit_bytes / 2)
    assert fitted.kmax_bytes == 4 * fitted.kmin_bytes


def test_what_is_set_stays() -> None:
    """Also of a priority; and a law that marks at a step has one."""
    config = replace(
        CONFIG,
        ecn=EcnConfig(kmin_bytes=5_000, kmax_bytes=200_000, pmax_fraction=0.01),
        queues=QueuesConfig(
            priorities=(PriorityConfig(ecn=EcnConfig(kmax_bytes=2_000_000)), PriorityConfig(priority=6))
        ),
    )
    fitted = fit_marking(config, RED, star(100))
    assert fitted.ecn == config.ecn
    assert fitted.queues.priorities[0].ecn == EcnConfig(kmin_bytes=400_000, kmax_bytes=2_000_000, pmax_fraction=0.2)
    assert fitted.queues.priorities[1].ecn is None
    assert fit_marking(CONFIG, MARKING, star(100)).ecn.curve == (300_000, 300_001, 1.0)


def test_a_kmin_above_the_fitted_kmax_is_refused() -> None:
    """The one that was set is named, with what is allowed above it."""
    with pytest.raises(InputError) as refused:
        fit_marking(replace(CONFIG, ecn=EcnConfig(kmin_bytes=500_000)), RED, star(25))
    assert str(refused.value) == "ecn.kmax: 400000 B\n  allowed: above 500000, up to 1000000000000000 B"


def test_derived_marking_is_shown_with_its_rule() -> None:
    """Only what was open; nothing where switches do not mark."""

    def note(config: PacketConfig, link: Link) -> str:
        return marking_note(config, fit_marking(config, RED, link), RED, link)

    source = "(Li et al., HPCC, SIGCOMM 2019, section 5.1)"
    assert note(CONFIG, star(25)) == (
        f"engine.ecn kmin 100 KB, kmax 400 KB, pmax 0.2: 100 KB and 400 KB for each 25 Gbps of the NICs, 20 % {source}"
    )
    some = replace(CONFIG, ecn=EcnConfig(kmin_bytes=10_000))
    assert note(some, star(400)).startswith("engine.ecn kmax 1.")
    assert f"20 %, but kmin at most half of what a port holds before it pauses {source}" in note(some, star(400))
    assert note(replace(CONFIG, ecn=EcnConfig(enabled=False)), star(25)) == ""
    assert note(CONFIG.with_marking(), star(25)) == ""


def test_pauses_that_come_early_lower_the_marking() -> None:
    """A buffer of 200 KB at 100 Gbps, of which 161,916 B before the pause: marks from 80,958 B on."""
    config = PacketConfig(pfc=PfcConfig(buffer_bytes=200_000))
    link = link_of(STAR, config)
    assert link
    assert link.queue_limit_bytes == 200_000 - 33_906 - 4178
    assert fit_marking(config, RED, link).ecn.kmin_bytes == 80_958
