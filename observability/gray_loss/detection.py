"""Lossy links, from packets by path: links whose paths bring fewer packets than even spraying would.

Every flow's packets are expected on its paths in equal shares, thinned by the losses found so far. For each link the
shortfall of all paths through it is held against its standard deviation: multinomial where only receivers count, so
that links that all paths of a flow share say nothing. Where senders count too losses are seen, and those through a link
are held against what paths without a fault lose, as Poisson counts: nine lost packets are many where no other is.

The link of the greatest shortfall is taken, its loss is estimated beside the others', and the rest is looked at again:
paths are intersected, and links that only share paths with the lossy one are not named. Taken links are kept while the
loss of each is beyond a limit that holds for all links together (Bonferroni). Links with the same paths cannot be told
apart, and are named together.

Spraying may be more even than at random (in turn) or less so (adaptive): the dispersion of all paths, by their median,
scales every standard deviation, where it differs from chance by more than its error. It is taken anew with each link,
since one lossy link moves all paths of its flows.

Source: the idea of counting sprayed packets by path is SprayCheck's; McCullagh and Nelder, "Generalized Linear Models",
1989, 4.5 (dispersion).
Left out: losses of switches as a whole, which show as losses of several of their links.

Shapes: F flows, P paths, L links, E entries, C candidates: sets of links with the same paths.
"""

import math
from collections import defaultdict
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from fabrictune.foundation.arrays import BoolArray, FloatArray, IntArray
from fabrictune.observability.gray_loss.counts import PathCounts

MAX_LOSSY = 32
_LOOK_AHEAD = 3  # links that are tried beyond those accepted: together they may explain what none does alone
_ROUNDS = 12  # of estimating the losses together
_MEDIAN_OF_SQUARE = 0.4549  # median of a chi-square with one degree of freedom
_MEDIAN_ERROR = 2.333  # standard error of that median over one value of many, relative
_LEAST_DISPERSION = 0.01  # of spraying in turn, which leaves whole packets over
_LEAST_FREE = 30  # paths beyond what is estimated, from which on their spread says something
_LEAST_BACKGROUND = 1e-6  # loss of a link without a fault


@dataclass(frozen=True, kw_only=True)
class LossyLink:
    """Links, one of which loses packets: only one link where paths tell them apart."""

    links: tuple[str, ...]
    loss_fraction: float
    error_fraction: float  # standard error of the loss
    deviations: float  # standard deviations from no loss
    packets: int  # expected on its paths


@dataclass(frozen=True, kw_only=True)
class LossReport:
    """What the counts show."""

    lossy: tuple[LossyLink, ...]
    num_links: int
    num_unseen: int  # links that all paths of their flows share, where only receivers count
    limit: float  # standard deviations that a shortfall has to be beyond
    dispersion: float  # 1: spraying at random
    background_fraction: float  # loss of paths without a fault; 0 where only receivers count
    least_packets: float  # by which a loss is known, of the tested link that has fewest


def packets_needed(
    loss_fraction: float, num_links: int, *, share: float = 0.0, alpha: float = 0.01, power: float = 0.9
) -> float:
    """Return the packets that a link's paths must carry for its loss to be found, sprayed at random.

    Only receivers count, so that a loss shows against the flow's other paths: those of a link with a `share` of its
    flows' packets miss `1 - share` of it. `alpha` is the chance of a false alarm among all links, `power` that of
    finding the loss.
    """
    return ((_limit(alpha, num_links) + NormalDist().inv_cdf(power)) / loss_fraction) ** 2 / (1 - share)


def find_lossy_links(counts: PathCounts, *, alpha: float = 0.01, least_loss: float = 0.001) -> LossReport:
    """Return the links with a loss of `least_loss` or more that chance does not explain but `alpha` of the times."""
    fit = _Fit(counts)
    limit = _limit(alpha, max(1, int(fit.is_seen_C.sum())))
    chosen: list[int] = []
    num_accepted = 0
    while len(chosen) < min(MAX_LOSSY, num_accepted + _LOOK_AHEAD):
        fit.estimate(chosen)
        deviations_C = np.where(fit.is_seen_C, fit.shortfall_C / np.maximum(fit.deviation_C, 1e-9), 0.0)
        deviations_C[chosen] = 0.0
        best = int(deviations_C.argmax())
        if deviations_C[best] <= 0:
            break
        chosen.append(best)
        fit.estimate(chosen)
        if min(fit.deviations(candidate) for candidate in chosen) > limit:
            num_accepted = len(chosen)
    chosen = chosen[:num_accepted]
    fit.estimate(chosen)
    chosen = [candidate for candidate in chosen if fit.loss_C[candidate] >= least_loss]
    fit.estimate(chosen)
    lossy = [fit.lossy_link(candidate) for candidate in chosen]
    return LossReport(
        lossy=tuple(sorted(lossy, key=lambda one: -one.deviations)),
        num_links=len(counts.link_L),
        num_unseen=sum(len(fit.links[number]) for number in np.flatnonzero(~fit.is_seen_C)),
        limit=limit,
        dispersion=fit.dispersion,
        background_fraction=fit.background,
        least_packets=float(fit.information_C[fit.is_seen_C].min()) if fit.is_seen_C.any() else 0.0,
    )


def _limit(alpha: float, num_links: int) -> float:
    return -NormalDist().inv_cdf(alpha / max(1, num_links))


class _Fit:
    """Expected packets under the losses estimated so far, and the shortfall of each candidate."""

    def __init__(self, counts: PathCounts) -> None:
        self._counts = counts
        self.links, candidate_L = _candidates(counts)
        pairs = np.unique(counts.path_E * len(self.links) + candidate_L[counts.link_E])
        self._path_E, self._candidate_E = pairs // len(self.links), pairs % len(self.links)
        self._total_F = np.bincount(counts.flow_P, counts.received_P, minlength=counts.num_flows)
        self.loss_C = np.zeros(len(self.links))
        self.dispersion, self.background = 1.0, 0.0
        flow_E = counts.flow_P[self._path_E]
        pair_E = flow_E * len(self.links) + self._candidate_E
        self._pair_X, self._pair_E = np.unique(pair_E, return_inverse=True)
        self._flow_X, self._candidate_X = self._pair_X // len(self.links), self._pair_X % len(self.links)
        self._update()
        self.dispersion = self._dispersion()
        self._update()

    @property
    def is_seen_C(self) -> BoolArray:
        """Whether the counts say anything about each candidate."""
        return np.asarray(self.deviation_C > 0)

    def estimate(self, chosen: list[int]) -> None:
        """Estimate the losses of the chosen candidates together."""
        self.loss_C = np.zeros(len(self.links))
        for _ in range(_ROUNDS if chosen else 1):
            for candidate in chosen:
                self._update()
                # Where only receivers count, what one link lost is spread over all: the rest expects too much.
                kept = 1 - self.loss_C[candidate]
                share = self.shortfall_C[candidate] / self.information_C[candidate]
                self.loss_C[candidate] = min(1.0, max(0.0, 1 - kept * max(0.0, 1 - share)))
            self._update()
        self.dispersion = self._dispersion()
        self._update()

    def deviations(self, candidate: int) -> float:
        """Return how many standard errors a chosen candidate's loss is from none.

        Of losses that are seen it is the signed root of the deviance: as unlikely as so many standard errors.
        """
        if self._counts.knows_sent:
            return self._root_deviance(candidate)
        error = float(self.deviation_C[candidate] / self.information_C[candidate])
        return float(self.loss_C[candidate]) / error if error else 0.0

    def lossy_link(self, candidate: int) -> LossyLink:
        """Return a chosen candidate's loss."""
        error = float(self.deviation_C[candidate] / self.information_C[candidate])
        loss = float(self.loss_C[candidate])
        return LossyLink(
            links=self.links[candidate],
            loss_fraction=loss,
            error_fraction=error,
            deviations=self.deviations(candidate),
            packets=int(self.packets_C[candidate]),
        )

    def _update(self) -> None:
        counts, num = self._counts, len(self.links)
        with np.errstate(divide="ignore"):
            log_kept_C = np.log1p(-np.minimum(self.loss_C, 1 - 1e-12))
        kept_P = np.exp(np.bincount(self._path_E, log_kept_C[self._candidate_E], minlength=len(counts.flow_P)))
        if counts.knows_sent:
            lost = 1 - counts.received_P.sum() / max(float((counts.sent_P * kept_P).sum()), 1.0)
            self.background = max(float(lost), _LEAST_BACKGROUND)
            kept_P *= 1 - self.background
            self._expected_P: FloatArray = np.asarray(counts.sent_P * kept_P, np.float64)
            variance_P: FloatArray = self._expected_P * np.maximum(1 - kept_P, _LEAST_BACKGROUND)
        else:
            weight_P = counts.share_P * kept_P
            sum_F = np.bincount(counts.flow_P, weight_P, minlength=counts.num_flows)
            self._expected_P = np.asarray(self._total_F[counts.flow_P] * weight_P / sum_F[counts.flow_P], np.float64)
            variance_P = self._expected_P
        missing_P = self._expected_P - counts.received_P
        self.shortfall_C = np.bincount(self._candidate_E, missing_P[self._path_E], minlength=num)
        self.packets_C = np.bincount(self._candidate_E, self._expected_P[self._path_E], minlength=num)
        variance_C = np.asarray(np.bincount(self._candidate_E, variance_P[self._path_E], minlength=num), np.float64)
        self.information_C = np.asarray(np.maximum(self.packets_C, 1e-9), np.float64)
        if not counts.knows_sent:
            variance_C, self.information_C = self._multinomial(variance_C)
        self.deviation_C = np.sqrt(np.maximum(variance_C, 0) * self.dispersion)
        self.deviation_C[variance_C <= 1e-6 * self.packets_C] = 0.0
        if not counts.knows_sent:  # a packet or so of each flow is left over where it sprays in turn
            num_flows_C = np.bincount(self._candidate_X, minlength=num)
            self.deviation_C = np.where(self.deviation_C > 0, np.hypot(self.deviation_C, 0.5 * num_flows_C**0.5), 0.0)

    def _root_deviance(self, candidate: int) -> float:
        """Return how far the losses through a candidate are beyond those without its own, as Poisson counts."""
        own = self._path_E[self._candidate_E == candidate]
        sent_P, received_P = self._counts.sent_P[own], self._counts.received_P[own]
        kept_P = self._expected_P[own] / max(1 - float(self.loss_C[candidate]), 1e-12)
        lost, usual = float((sent_P - received_P).sum()), float((sent_P - kept_P).sum())
        if lost <= usual:
            return 0.0
        return math.sqrt(2 * (lost * math.log(lost / usual) - (lost - usual)))

    def _multinomial(self, variance_C: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return variances given each flow's total, and the packets by which a loss is known: those beside it count."""
        share_X = np.bincount(self._pair_E, self._expected_P[self._path_E], minlength=len(self._pair_X))
        total_X = np.maximum(self._total_F[self._flow_X], 1)
        common_C = np.bincount(self._candidate_X, share_X**2 / total_X, minlength=len(self.links))
        variance_C = np.where(variance_C - common_C > 1e-6 * self.packets_C, variance_C - common_C, 0.0)
        return variance_C, np.maximum(variance_C, 1e-9)

    def _dispersion(self) -> float:
        """Return the spread of all paths over that of spraying at random, by the median, which few lossy ones leave."""
        if self._counts.knows_sent:
            return 1.0
        expected_P = self._expected_P
        total_P = self._total_F[self._counts.flow_P]
        variance_P = expected_P * (1 - expected_P / np.maximum(total_P, 1))
        square_P = (self._counts.received_P - expected_P) ** 2
        is_known_P = variance_P > 0
        num_paths, num_lossy = int(is_known_P.sum()), int((self.loss_C > 0).sum())
        if num_paths - self._counts.num_flows - num_lossy < _LEAST_FREE:
            return max(1.0, self.dispersion)
        median = float(np.median(square_P[is_known_P] / variance_P[is_known_P]))
        dispersion = median / _MEDIAN_OF_SQUARE * num_paths / (num_paths - num_lossy)
        is_random = abs(dispersion - 1) < 2 * _MEDIAN_ERROR / num_paths**0.5  # its own error says no more
        return 1.0 if is_random else max(_LEAST_DISPERSION, dispersion)


def _candidates(counts: PathCounts) -> tuple[list[tuple[str, ...]], IntArray]:
    """Return the sets of links that have the same paths, and the set of each link."""
    random_P = np.random.default_rng(0).integers(0, 2**62, len(counts.flow_P), np.int64)
    entries = np.unique(np.stack([counts.link_E, counts.path_E]), axis=1)
    print_L = np.zeros(len(counts.link_L), np.uint64)
    np.add.at(print_L, entries[0], random_P[entries[1]].astype(np.uint64))
    of_print: dict[int, list[int]] = defaultdict(list)
    for link, fingerprint in enumerate(print_L.tolist()):
        of_print[fingerprint].append(link)
    candidate_L = np.zeros(len(counts.link_L), np.int64)
    for number, links in enumerate(of_print.values()):
        candidate_L[links] = number
    return [tuple(counts.link_L[link] for link in links) for links in of_print.values()], candidate_L
