"""Checks of RAS's answer: ranks that do not answer, ranks with an error, ranks behind the others.

Ranks of a busy job differ by a few collectives, because RAS does not ask all of them at one moment. So a finding names
the operation and the difference, and says to ask again.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from fabrictune.collectives.nccl.ras_json import RasCommunicator, RasMissingRank, RasRank, RasStatus
from fabrictune.foundation.checks import CheckReport, join_reports, run_check
from fabrictune.foundation.finding_rules.nccl import FAILED_RANK, LAGGING_RANK, MISSING_RANK
from fabrictune.foundation.records import Confidence, Finding
from fabrictune.foundation.wording import count, some

SUCCESS, IN_PROGRESS = 0, 7  # ncclResult_t


def check_ras(status: RasStatus) -> CheckReport:
    """Return what looks wrong in a job's state."""
    subject = f"{count(sum(one.num_ranks for one in status.communicators), 'rank')} of " + count(
        len(status.communicators), "communicator"
    )
    return join_reports(
        run_check(MISSING_RANK.id, subject, _missing(status), expected="an answer of every rank"),
        run_check(FAILED_RANK.id, subject, _failed(status), expected="no error"),
        run_check(LAGGING_RANK.id, subject, _lagging(status), expected="as many collectives on every rank"),
    )


def _missing(status: RasStatus) -> Iterator[Finding]:
    for communicator in status.communicators:
        for what, ranks in (
            ("considered dead", [one for one in communicator.missing if one.is_dead]),
            ("unresponsive", [one for one in communicator.missing if one.is_unresponsive and not one.is_dead]),
            (
                "reachable, but no member now",
                [one for one in communicator.missing if not one.is_unresponsive and not one.is_dead],
            ),
        ):
            if ranks:
                yield MISSING_RANK.finding(
                    entity=f"communicator {communicator.name}",
                    expected=f"{count(communicator.num_ranks, 'rank')} that answer",
                    actual=f"{count(len(ranks), 'rank')} {what}: {_places(ranks)}",
                    confidence=Confidence.MEASURED,
                )


def _failed(status: RasStatus) -> Iterator[Finding]:
    for communicator in status.communicators:
        for what, ranks in (
            (
                "an asynchronous error",
                [one for one in communicator.ranks if one.async_error not in (SUCCESS, IN_PROGRESS)],
            ),
            (
                "a failed initialisation",
                [one for one in communicator.ranks if one.init_state not in (SUCCESS, IN_PROGRESS)],
            ),
            ("an abort", [one for one in communicator.ranks if one.is_aborted]),
        ):
            if ranks:
                yield FAILED_RANK.finding(
                    entity=f"communicator {communicator.name}",
                    expected="no error on any rank",
                    actual=f"{what} on {count(len(ranks), 'rank')}: {_places(ranks)}",
                    confidence=Confidence.MEASURED,
                )


def _lagging(status: RasStatus) -> Iterator[Finding]:
    """Yield a finding for the operation with the largest difference of each communicator."""
    for communicator in status.communicators:
        differences = [(_spread(communicator, place), place) for place in range(len(communicator.operations))]
        widest, place = max(differences, default=(0, 0))
        if widest:
            most = max(rank.counts[place] for rank in communicator.ranks)
            behind = [rank for rank in communicator.ranks if rank.counts[place] < most]
            numbers = Counter(rank.counts[place] for rank in communicator.ranks)
            counted = some(f"{count(number, 'rank')} at {done:,}" for done, number in sorted(numbers.items()))
            yield LAGGING_RANK.finding(
                entity=f"communicator {communicator.name}: {communicator.operations[place]}",
                expected=f"{most:,} launched on every rank",
                actual=f"{counted}; behind: {_places(sorted(behind, key=lambda rank: rank.counts[place]))}",
                confidence=Confidence.MEASURED,
            )


def _spread(communicator: RasCommunicator, place: int) -> int:
    counts = [rank.counts[place] for rank in communicator.ranks]
    return max(counts, default=0) - min(counts, default=0)


def _places(ranks: Sequence[RasRank] | Sequence[RasMissingRank]) -> str:
    return some(f"rank {one.rank} (GPU {one.gpu} of {one.host}, process {one.pid})" for one in ranks)
