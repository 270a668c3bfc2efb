"""Stage: flows between the NICs of every rail, alone, in concurrent pairs and in bisections, against the model.

A round in which a flow or the total is below its limit is measured again, RETRIES times, with the same source ports, so
on the same paths, and of each flow the best counts: what is low each time is the path's fault. Once more with new
source ports, and so new paths, tells a link of the fabric from a NIC. Where ports do not make the path (Linux as a
switch takes the sender's own hash), flows alone that are low once and good again are counted instead
(`cluster.flows-unsteady`). Hosts are compared with one another besides (`rdma.slow-host`), as in a matrix of adapters.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fabrictune.foundation.checks import CheckReport, join_reports, run_check
from fabrictune.foundation.finding_rules.cluster import FLOW_FAILED, FLOW_LOW, FLOWS_UNSTEADY, ROUND_LOW
from fabrictune.foundation.finding_rules.schema import Rule
from fabrictune.foundation.findings import Confidence, Finding
from fabrictune.foundation.units import format_rate
from fabrictune.rdma_bench.measurement.slow_hosts import check_hosts
from fabrictune.rdma_bench.measurement.transfers import MeasuredTransfer
from fabrictune.validate.cluster.blame import blame_nics
from fabrictune.validate.cluster.rate_model import SHARES, Expected, Flow, RateModel
from fabrictune.validate.cluster.results import UNKNOWN, Measurement, StageResult, StageState, Verdict
from fabrictune.validate.cluster.rounds import Round, plan_rounds
from fabrictune.validate.cluster.site import Site

RETRIES = 2
SKIPPED_FRACTION = 0.3  # of a flow's time, in which TCP starts
ANSWER_S = 30.0
ALONE, TOTAL, BETWEEN = "alone", "all flows", " to "


@dataclass(frozen=True, kw_only=True)
class _Rates:
    """The best rate of each flow of a round, its error where it has none, its source port, and the best total."""

    rate_bps: Sequence[float]
    errors: Sequence[str]
    ports: Sequence[int]  # source ports; 0 where there was no connection
    total_bps: float


def run_matrix(site: Site) -> StageResult:
    """Measure all rounds; what is there when it is stopped is kept."""
    usable = [node for node, own in site.nics.nics.items() if own and node in site.crew.present]
    if len(usable) < 2:
        reason = f"{len(usable)} nodes with NICs: it takes two"
        return StageResult(name="matrix", state=StageState.INCOMPLETE, reason=reason)
    matrix = _Matrix(site)
    rounds = list(plan_rounds(site.nics, site.settings.num_rounds, site.settings.num_paths))
    is_stopped = False
    try:
        matrix.open()
        for number, one in enumerate(rounds):
            matrix.measure(one)
            site.progress((number + 1) / len(rounds), one.part)
    except KeyboardInterrupt:
        is_stopped = True
    return matrix.result(is_stopped=is_stopped)


class _Matrix:
    """Measures rounds, and keeps what they gave."""

    def __init__(self, site: Site) -> None:
        self._site, self._token = site, secrets.token_hex(16)
        self._ports: dict[str, int] = {}  # by the label of a NIC
        self._model = RateModel(site.fabric, {})
        self._measured: list[Measurement] = []
        self._transfers: list[MeasuredTransfer] = []
        self._host_bps: dict[str, float] = {}
        self._num_sharing, self._expected_sharing = 0, 0.0

    def open(self) -> None:
        """Calibrate the hosts, all at once, and let every NIC receive."""
        crew, nics, duration_s = self._site.crew, self._site.nics.nics, self._site.settings.flow_s
        timing = {"duration_s": duration_s, "skip_s": SKIPPED_FRACTION * duration_s}
        answers = crew.ask_all({"do": "loopback", **timing}, limit_s=ANSWER_S + 2 * duration_s)
        self._host_bps = {node: float(one.result) for node, one in answers.items() if not one.error}
        self._measured += [
            Measurement(part="host limit", subject=node, unit="bit/s", measured=rate, detail="both ends on loopback")
            for node, rate in self._host_bps.items()
        ]
        self._model = RateModel(self._site.fabric, self._host_bps)
        orders = {
            node: {"do": "listen", "addresses": [nic.ipv4 for nic in own], "token": self._token}
            for node, own in nics.items()
        }
        for node, answer in crew.ask(orders, limit_s=ANSWER_S).items():
            if not answer.error:
                self._ports |= {nic.label: port for nic, port in zip(nics[node], answer.result, strict=True)}

    def measure(self, planned: Round) -> None:
        """Measure a round, again where something is low."""
        present = self._site.crew.present
        flows = [flow for flow in planned.flows if all(nic.node in present for nic in flow)]
        if not flows:
            return
        expected = self._model.expect(flows)
        limit_bps, total_limit_bps = self._limit(expected.flows[0], FLOW_LOW), self._limit(expected.total, ROUND_LOW)
        rates = first = self._run(flows, [0] * len(flows))
        for _ in range(RETRIES):
            if min(rates.rate_bps) >= limit_bps and rates.total_bps >= total_limit_bps:
                break
            rates = _best(rates, self._run(flows, rates.ports))
        details = list(rates.errors)
        if any(0 <= rate < limit_bps for rate in rates.rate_bps):
            elsewhere = self._run(flows, [0] * len(flows)).rate_bps
            details = [
                error or (f"from another source port {format_rate(other)}" if 0 <= rate < limit_bps <= other else "")
                for error, rate, other in zip(details, rates.rate_bps, elsewhere, strict=True)
            ]
        if planned.part.startswith(ALONE) and 0 <= first.rate_bps[0] < limit_bps <= rates.rate_bps[0]:
            details[0] = f"{format_rate(first.rate_bps[0])} at first"
        for flow, own, rate_bps, detail in zip(flows, expected.flows, rates.rate_bps, details, strict=True):
            subject = f"{flow[0].label}{BETWEEN}{flow[1].label}"
            self._measured.append(_measurement(planned.part, subject, rate_bps, own, limit_bps, detail))
            self._transfers.append(
                MeasuredTransfer(
                    num_queue_pairs=1,
                    size_bytes=0,
                    num_directions=1,
                    bandwidth_bps=rate_bps,
                    sender=flow[0].label,
                    receiver=flow[1].label,
                )
            )
        best_bps = [SHARES * own.high_bps for own in expected.flows]
        self._num_sharing += sum(0 <= rate < best for rate, best in zip(rates.rate_bps, best_bps, strict=True))
        self._expected_sharing += expected.num_sharing
        if len(flows) > 1:
            self._measured.append(
                _measurement(planned.part, TOTAL, rates.total_bps, expected.total, total_limit_bps, "")
            )

    def result(self, *, is_stopped: bool) -> StageResult:
        """Return what was measured."""
        crew, failed = self._site.crew, [one for one in self._measured if one.verdict == Verdict.FAILED]
        state, reason = StageState.DONE, ""
        if crew.missing or failed:
            state = StageState.INCOMPLETE
            lost = ", ".join(crew.missing)
            reason = f"without {lost}" if lost else f"{len(failed)} flows failed"
        if is_stopped:
            state, reason = StageState.STOPPED, f"after {len(self._measured):,} measurements"
        return StageResult(
            name="matrix",
            state=state,
            reason=reason,
            measurements=tuple(self._measured),
            report=self._report(),
            notes=(
                f"flows that shared a link: {self._num_sharing}; the model has {self._expected_sharing:.1f}",
                *self._model.assumptions,
                "flows are TCP; adapters by RDMA: fabrictune rdma matrix",
            ),
            data={"host_bps": self._host_bps},
        )

    def _limit(self, expected: Expected, rule: Rule) -> float:
        """Return the least rate that is good, UNKNOWN where nothing is known of NICs and hosts."""
        shortfall = self._site.rules.threshold(rule, "shortfall")
        return expected.least_bps * (1 - shortfall) if expected.least_bps < float("inf") else UNKNOWN

    def _run(self, flows: Sequence[Flow], ports: Sequence[int]) -> _Rates:
        """Send all flows at once, from these source ports; 0 is any."""
        duration_s = self._site.settings.flow_s
        of_node: dict[str, list[int]] = {}
        for number, (source, _) in enumerate(flows):
            of_node.setdefault(source.node, []).append(number)
        orders = {
            node: {"do": "send", "flows": [self._spec(flows[number], ports[number]) for number in numbers]}
            for node, numbers in of_node.items()
        }
        answers = self._site.crew.ask(orders, limit_s=ANSWER_S + 4 * duration_s)
        outcomes: list[Mapping[str, object]] = [{"error": "its node does not answer"}] * len(flows)
        for node, answer in answers.items():
            for number, result in zip(of_node[node], answer.result or (), strict=False):
                outcomes[number] = result
        rates = [float(str(one.get("rate_bps", UNKNOWN))) for one in outcomes]
        errors = [str(one.get("error", "")) for one in outcomes]
        used = [int(str(one.get("source_port", 0))) for one in outcomes]
        return _Rates(rate_bps=rates, errors=errors, ports=used, total_bps=sum(rate for rate in rates if rate > 0))

    def _spec(self, flow: Flow, source_port: int) -> dict[str, object]:
        source, destination = flow
        duration_s = self._site.settings.flow_s
        return {
            "host": destination.ipv4,
            "port": self._ports.get(destination.label, 0),
            "source": source.ipv4,
            "source_port": source_port,
            "token": self._token,
            "duration_s": duration_s,
            "skip_s": SKIPPED_FRACTION * duration_s,
        }

    def _report(self) -> CheckReport:
        flows = [one for one in self._measured if one.subject != TOTAL and one.part != "host limit"]
        totals = [one for one in self._measured if one.subject == TOTAL]
        failed = (
            FLOW_FAILED.finding(
                entity=one.subject,
                actual=one.detail,
                expected=f"a flow ({one.part})",
                confidence=Confidence.MEASURED,
            )
            for one in flows
            if one.verdict == Verdict.FAILED
        )
        return join_reports(
            run_check(FLOW_FAILED.id, f"{len(flows):,} flows", failed, expected="each is measured"),
            run_check(FLOW_LOW.id, f"{len(flows):,} flows", _low_flows(flows), expected="none below its limit"),
            run_check(ROUND_LOW.id, f"{len(totals):,} rounds", _low_rounds(totals), expected="none below its limit"),
            self._check_steadiness([one for one in flows if one.part.startswith(ALONE)]),
            check_hosts(self._transfers, is_latency=False, rules=self._site.rules),
        )

    def _check_steadiness(self, flows: Sequence[Measurement]) -> CheckReport:
        rules, unsteady = self._site.rules, [one for one in flows if one.verdict == Verdict.GOOD and one.detail]
        least = max(
            rules.threshold(FLOWS_UNSTEADY, "least_flows"), rules.threshold(FLOWS_UNSTEADY, "share") * len(flows)
        )
        finding = FLOWS_UNSTEADY.finding(
            entity="flows alone",
            actual=f"{len(unsteady)} of {len(flows)} were below their limit at first, and good later",
            expected="the same rate on every trial",
            confidence=Confidence.MEASURED,
            evidence=[f"{one.subject}: {one.detail}, then {format_rate(one.measured)}" for one in unsteady],
        )
        found = [finding] if len(unsteady) >= least else []
        return run_check(FLOWS_UNSTEADY.id, f"{len(flows):,} flows alone", found, expected="steady", actual="steady")


def _best(first: _Rates, second: _Rates) -> _Rates:
    pairs = list(zip(first.rate_bps, second.rate_bps, strict=True))
    errors = zip(first.errors, second.errors, strict=True)
    ports = zip(first.ports, second.ports, strict=True)
    return _Rates(
        rate_bps=[max(pair) for pair in pairs],
        errors=["" if max(pair) >= 0 else own or other for pair, (own, other) in zip(pairs, errors, strict=True)],
        ports=[own or other for own, other in ports],
        total_bps=max(first.total_bps, second.total_bps),
    )


def _measurement(
    part: str, subject: str, rate_bps: float, expected: Expected, limit_bps: float, detail: str
) -> Measurement:
    is_known = limit_bps != UNKNOWN
    verdict = Verdict.NO_LIMIT if not is_known else Verdict.GOOD if rate_bps >= limit_bps else Verdict.BAD
    return Measurement(
        part=part,
        subject=subject,
        unit="bit/s",
        measured=rate_bps,
        predicted=expected.median_bps if is_known else UNKNOWN,
        predicted_low=expected.low_bps if is_known else UNKNOWN,
        predicted_high=expected.high_bps if is_known else UNKNOWN,
        limit=limit_bps,
        verdict=Verdict.FAILED if rate_bps < 0 else verdict,
        detail=detail,
    )


def _low_flows(flows: Sequence[Measurement]) -> Iterator[Finding]:
    """Yield a finding for each NIC that low flows share, and for each low flow beside."""
    ends = [(one.subject.split(BETWEEN)[0], one.subject.split(BETWEEN)[1]) for one in flows]
    for blame in blame_nics(ends, [one.verdict == Verdict.BAD for one in flows]):
        low = [flows[number] for number in blame.flows]
        worst = min(low, key=lambda one: one.measured / one.limit)
        elsewhere = f"; {worst.detail}: a link between switches" if worst.detail else ""
        many = f"{len(low)} of {blame.num_flows_of_nic} flows; the worst: {worst.subject}, " if blame.nic else ""
        yield _finding(FLOW_LOW, blame.nic or worst.subject, worst, many, elsewhere)


def _low_rounds(totals: Sequence[Measurement]) -> Iterator[Finding]:
    yield from (_finding(ROUND_LOW, one.part, one) for one in totals if one.verdict == Verdict.BAD)


def _finding(rule: Rule, entity: str, one: Measurement, many: str = "", elsewhere: str = "") -> Finding:
    return rule.finding(
        entity=entity,
        actual=f"{many}{format_rate(one.measured)} ({one.part}), the best of {RETRIES + 1} trials{elsewhere}",
        expected=f"at least {format_rate(one.limit)}; predicted {format_rate(one.predicted)}, "
        f"over hash seeds {format_rate(one.predicted_low)} to {format_rate(one.predicted_high)}",
        confidence=Confidence.MEASURED,
        evidence=("table cluster_measurements",),
    )
