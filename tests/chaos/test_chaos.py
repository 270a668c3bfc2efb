"""A sample of the chaos: one fault of each family, three of them in every run of the tests."""

import pytest

from tests.chaos.plan import BY_NAME, make_plan
from tests.chaos.session import Session
from tests.chaos.undisturbed import Undisturbed

SEED = 1
SAMPLE = {  # family: fault
    "kill": "kill rank",
    "stop": "stop rank",
    "driver": "kill driver",
    "network": "cut link",
    "disk": "slow disk",
    "damage": "flipped memory",
    "second": "kill in a recovery",
    "data": "flipped data",
    "clock": "clock back",
    "slow": "slow rank",
}
ALWAYS = ("kill", "stop", "slow")  # families; all ten take five minutes of two cores


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(tmp_path_factory.mktemp("chaos"), SEED)


@pytest.fixture(scope="module")
def undisturbed(session: Session) -> Undisturbed:
    return session.undisturbed()


def test_the_sample_has_every_family() -> None:
    """Each fault is of the family for which it is there."""
    assert SAMPLE.keys() == {fault.family for fault in BY_NAME.values()}
    assert all(BY_NAME[name].family == family for family, name in SAMPLE.items())


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [pytest.param(fault, marks=() if family in ALWAYS else pytest.mark.sweep) for family, fault in SAMPLE.items()],
)
def test_a_disturbed_job_recovers_or_names_why_it_stops(fault: str, session: Session, undisturbed: Undisturbed) -> None:
    """The same as undisturbed to the last bit, the guilty named, nothing left behind."""
    if lack := BY_NAME[fault].needs:
        pytest.skip(lack)
    verdict = session.run(make_plan(SEED, 0, fault), undisturbed)
    assert verdict.failures == ()
