"""Selection of settings that survive a flap and still detect a dead peer in time.

Every timeout exponent and retry count is tried. Those that satisfy both come in the order in which a dead peer is
noticed; of settings that an adapter makes the same of (those below its floor), the one with the greatest exponent.
"""

from dataclasses import dataclass

from fabrictune.foundation.retransmission import MAX_EXPONENT, MAX_RETRIES
from fabrictune.rdma_bench.timers.prediction import Prediction, RetransmissionSpec, predict_retransmission
from fabrictune.rdma_bench.timers.profiles import TimerProfile


@dataclass(frozen=True, kw_only=True)
class TimerSelection:
    """Range of settings to choose from."""

    satisfying: tuple[Prediction, ...]  # the best first
    soonest_to_notice: Prediction | None  # of those that survive the flap
    longest_to_survive: Prediction | None  # of those that notice in time


def choose_settings(profile: TimerProfile, *, survive_ns: float, notice_ns: float) -> TimerSelection:
    """Return the settings that survive a path down for `survive_ns` and give up after `notice_ns` at the latest."""
    offers = _offers(profile)
    surviving = [offer for offer in offers if offer.survives(survive_ns)]
    in_time = [offer for offer in offers if offer.gives_up_ns <= notice_ns]
    return TimerSelection(
        satisfying=tuple(offer for offer in surviving if offer in in_time),
        soonest_to_notice=surviving[0] if surviving else None,
        longest_to_survive=max(in_time, key=lambda offer: offer.longest_flap_ns, default=None),
    )


def _offers(profile: TimerProfile) -> list[Prediction]:
    """Return a prediction for every pair of settings that differs from the others, by when it gives up."""
    different: dict[tuple[float, ...], Prediction] = {}
    for retries in range(profile.timers.fewest_retries, MAX_RETRIES + 1):
        for exponent in range(1, MAX_EXPONENT + 1):
            offer = predict_retransmission(RetransmissionSpec(timeout_exponent=exponent, retries=retries), profile)
            different[offer.gives_up_ns, *offer.retransmissions_ns] = offer
    return sorted(different.values(), key=lambda offer: (offer.gives_up_ns, -offer.longest_flap_ns))
