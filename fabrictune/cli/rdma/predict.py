"""`fabrictune rdma timers predict|table|choose`: timers of one setting, of all settings, and selection."""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.findings import HAS_FINDINGS
from fabrictune.cli.framework.options import json_option, read_duration, read_durations
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.foundation.units import PS_PER_NS

if TYPE_CHECKING:
    from fabrictune.rdma_bench.timers.prediction import Prediction, RetransmissionSpec
    from fabrictune.rdma_bench.timers.profiles import TimerProfile

MAX_SHOWN = 10
TABLE_EXPONENTS = range(14, 23)

timeout_exponent_option = click.option(
    "--timeout", type=click.IntRange(0, 31), metavar="T", help="Timeout exponent (NCCL_IB_TIMEOUT): 4.096 us * 2**T."
)
retries_option = click.option(
    "--retries", type=click.IntRange(0, 7), metavar="R", help="Retry count (NCCL_IB_RETRY_CNT)."
)
nccl_option = click.option(
    "--nccl", metavar="VERSION", help="NCCL version whose defaults apply.  [default: the newest]"
)
profile_option = click.option(
    "--profile",
    metavar="NAME|FILE",
    help="Adapter profile; `rdma timers predict` lists the names.  [default: connectx-6, and says so]",
)


def retransmission_of(timeout: int | None, retries: int | None, nccl: str | None) -> "RetransmissionSpec":
    """Return the settings that options name: NCCL's defaults, but for what is given. Raises InputError."""
    from fabrictune.rdma_bench.timers.nccl_defaults import NEWEST, nccl_default
    from fabrictune.rdma_bench.timers.prediction import RetransmissionSpec

    default = nccl_default(nccl or NEWEST, where="--nccl")
    return RetransmissionSpec(
        timeout_exponent=default.timeout_exponent if timeout is None else timeout,
        retries=default.retries if retries is None else retries,
    )


def chosen_profile(name: str | None) -> tuple["TimerProfile", list[str]]:
    """Return the profile that is named, or the default one with what that assumes. Raises InputError."""
    from fabrictune.rdma_bench.timers.profile_files import find_profile
    from fabrictune.rdma_bench.timers.profiles import DEFAULT_PROFILE

    profile = find_profile(name or DEFAULT_PROFILE, where="--profile")
    if name:
        return profile, []
    return profile, [
        f"assumed: a {profile.device} with firmware {profile.firmware}, for want of --profile; of a ConnectX-7 or "
        "BlueField-3 no timers are known: `fabrictune rdma timers measure` makes a profile of yours"
    ]


@click.command()
@timeout_exponent_option
@retries_option
@nccl_option
@click.option("--profile", "names", multiple=True, metavar="NAME|FILE", help="Adapter profile to show; repeatable.")
@click.option(
    "--flap", "flap_ps", callback=read_duration, metavar="DURATION", help="Duration of a link flap to evaluate."
)
@click.option(
    "--survive",
    "survived_ps",
    callback=read_durations,
    multiple=True,
    metavar="DURATION",
    help="Print one line: which profiles survive a link flap of this duration; repeatable.",
)
@json_option
def predict(
    timeout: int | None,
    retries: int | None,
    nccl: str | None,
    names: tuple[str, ...],
    flap_ps: int | None,
    survived_ps: tuple[int, ...],
    as_json: bool,
) -> int:
    """Predict the time to a retry-exceeded error and the longest flap survived, by adapter profile.

    Times count from the first packet that is lost. A flap is survived if the link is back when the last retransmission
    goes out; traffic resumes with the first one after it. With --survive the exit code is 1 where a profile does not.

    \b
    Example:
      fabrictune rdma timers predict --nccl 2.21.5
      fabrictune rdma timers predict --survive 10s --survive 60s
      fabrictune rdma timers predict --timeout 20 --retries 7 --flap 30s
      fabrictune rdma timers predict --profile my-nic.json --json
    """
    from fabrictune.rdma_bench.timers import prediction
    from fabrictune.rdma_bench.timers.profile_files import find_profile
    from fabrictune.rdma_bench.timers.profiles import KNOWN_PROFILES

    spec = retransmission_of(timeout, retries, nccl)
    profiles = [find_profile(name, where="--profile") for name in names] or [
        profile for profile in KNOWN_PROFILES.values() if spec.retries >= profile.timers.fewest_retries
    ]
    predictions = [prediction.predict_retransmission(spec, profile) for profile in profiles]
    flap_ns = None if flap_ps is None else flap_ps / PS_PER_NS
    code = HAS_FINDINGS if any(not one.survives(flap / PS_PER_NS) for one in predictions for flap in survived_ps) else 0
    if as_json:
        print_json(
            [{**as_values(one), **_flap_values(one, flap_ns), **_survival(one, survived_ps)} for one in predictions]
        )
        return code
    if survived_ps:
        print_lines([survival_line(spec, predictions, survived_ps)])
        return code
    print_lines([f"timeout {spec.timeout_exponent}, {spec.retries} retries, by profile:"])
    flap_headings = () if flap_ps is None else (f"after {shown(flap_ns)} down",)
    headings = ("profile", "wait", "longest flap survived", "retry exceeded after", "interval", *flap_headings, "basis")
    print_table(headings, [_cells(one, flap_ns) for one in predictions])
    print_lines(["", "sources:", *(f"  {line}" for profile in profiles for line in _source_lines(profile))])
    if not names:
        print_lines([f"unknown: {unknown_line()}"])
    return code


@click.command()
@profile_option
@json_option
def table(profile: str | None, as_json: bool) -> None:
    """Show the time to a retry-exceeded error for every timeout and retry count of one profile.

    \b
    Example:
      fabrictune rdma timers table
      fabrictune rdma timers table --profile ibta --json
    """
    from fabrictune.foundation.retransmission import MAX_RETRIES
    from fabrictune.rdma_bench.timers.prediction import RetransmissionSpec, predict_retransmission

    known, assumed = chosen_profile(profile)
    counts = range(known.timers.fewest_retries, MAX_RETRIES + 1)
    rows = [
        [
            predict_retransmission(RetransmissionSpec(timeout_exponent=exponent, retries=retries), known)
            for retries in counts
        ]
        for exponent in TABLE_EXPONENTS
    ]
    if as_json:
        print_json([as_values(one) for row in rows for one in row])
        return
    headings = ("timeout", *(f"{retries} retries" for retries in counts))
    for title, name in (("retry exceeded after", "gives_up_ns"), ("longest flap survived", "longest_flap_ns")):
        print_lines([f"{known.name}: {title}"])
        cells = [
            (str(row[0].spec.timeout_exponent), *(f"{shown(getattr(one, name))}{_mark(one)}" for one in row))
            for row in rows
        ]
        print_table(headings, cells, indent=2)
    marked = "*: not tried, and no interval known" if known.confidence == "measured" and not known.intervals else ""
    marked = marked or ("*: not tried; interval in --json" if known.confidence == "measured" else "no trials")
    print_lines([*_source_lines(known), marked, *assumed])


@click.command()
@click.option(
    "--survive",
    "survive_ps",
    callback=read_duration,
    required=True,
    metavar="DURATION",
    help="Duration of a link flap to survive.",
)
@click.option(
    "--detect-within",
    "notice_ps",
    callback=read_duration,
    metavar="DURATION",
    help="Maximum failure-detection time: a dead peer ends the job within it.",
)
@profile_option
@json_option
def choose(survive_ps: int, notice_ps: int | None, profile: str | None, as_json: bool) -> int:
    """Find the settings that survive a flap and still detect a dead peer in time, fastest detection first.

    Ends with 1 where none does, and says what comes nearest.

    \b
    Example:
      fabrictune rdma timers choose --survive 10s --detect-within 30s
      fabrictune rdma timers choose --survive 30s --profile ibta
    """
    from fabrictune.rdma_bench.timers.selection import choose_settings

    notice_ns = math.inf if notice_ps is None else notice_ps / PS_PER_NS
    known, assumed = chosen_profile(profile)
    choice = choose_settings(known, survive_ns=survive_ps / PS_PER_NS, notice_ns=notice_ns)
    nearest = [one for one in (choice.soonest_to_notice, choice.longest_to_survive) if one]
    if as_json:
        lists = {"satisfying": choice.satisfying, "nearest": () if choice.satisfying else nearest}
        values = {name: [as_values(one) for one in found] for name, found in lists.items()}
        print_json({**values, "assumptions": assumed})
    elif choice.satisfying:
        print_lines([f"by the timers of {described(known)}:"])
        _print_settings(choice.satisfying[:MAX_SHOWN])
        num_more = len(choice.satisfying) - MAX_SHOWN
        print_lines([f"... and {num_more} more"] if num_more > 0 else [])
    else:
        print_lines([f"no settings do both by the timers of {described(known)}; nearest:"])
        _print_settings(nearest)
    if not as_json:
        print_lines(["", *_source_lines(known), *assumed])
    return 0 if choice.satisfying else HAS_FINDINGS


def survival_line(spec: "RetransmissionSpec", predictions: Sequence["Prediction"], flaps_ps: Sequence[int]) -> str:
    """Return which profiles survive each flap, in one line; a profile that does not has its longest flap beside it."""
    from fabrictune.foundation.units import format_duration

    answers = []
    for flap_ps in sorted(flaps_ps):
        failing = [one for one in predictions if not one.survives(flap_ps / PS_PER_NS)]
        surviving = [one.profile.name for one in predictions if one.survives(flap_ps / PS_PER_NS)]
        shown_failing = ", ".join(f"{one.profile.name} ({shown(one.longest_flap_ns)})" for one in failing)
        on = "on all profiles" if not failing else f"on {', '.join(surviving)}" if surviving else "on no profile"
        answers.append(
            f"{format_duration(flap_ps)} {on}" + (f"; not on {shown_failing}" if surviving and failing else "")
        )
    settings = f"timeout {spec.timeout_exponent}, {spec.retries} retries"
    return f"{settings}: survives {'; '.join(answers)}; unknown: {unknown_line()}"


def described(profile: "TimerProfile") -> str:
    """Return a profile's name with its adapter and firmware, as far as they are known."""
    parts = (profile.device, f"firmware {profile.firmware}" if profile.firmware else "")
    known = ", ".join(part for part in parts if part)
    return f"{profile.name} ({known})" if known else profile.name


def unknown_line() -> str:
    """Return the adapters whose timers nobody has published."""
    from fabrictune.rdma_bench.timers.profiles import UNKNOWN_ADAPTERS

    return f"{', '.join(UNKNOWN_ADAPTERS)} (nothing published; `fabrictune rdma timers measure` makes a profile)"


def as_values(prediction: "Prediction") -> dict[str, Any]:
    """Return a prediction as JSON values; a time that never comes is no finite number."""
    interval = prediction.gives_up_interval_ns
    return {
        "profile": prediction.profile.name,
        "timeout_exponent": prediction.spec.timeout_exponent,
        "retries": prediction.spec.retries,
        "interval_ns": prediction.interval_ns,
        "longest_flap_ns": prediction.longest_flap_ns,
        "gives_up_ns": prediction.gives_up_ns,
        "gives_up_interval_ns": None if interval is None else list(interval),
        "confidence": prediction.confidence,
        "basis": prediction.basis,
        "source": prediction.profile.source,
    }


def shown(time_ns: float | None) -> str:
    """Return a time for people; one that is not finite is never reached."""
    from fabrictune.foundation.units import format_duration

    return "never" if time_ns is None or math.isinf(time_ns) else format_duration(time_ns * PS_PER_NS)


def _flap_values(prediction: "Prediction", flap_ns: float | None) -> dict[str, Any]:
    if flap_ns is None:
        return {}
    return {
        "flap_ns": flap_ns,
        "survives": prediction.survives(flap_ns),
        "resumes_ns": prediction.resumes_ns(flap_ns),
    }


def _survival(prediction: "Prediction", flaps_ps: Sequence[int]) -> dict[str, Any]:
    """Return whether each flap is survived, nothing where none was asked for."""
    flaps = [
        {"flap_ns": flap_ps / PS_PER_NS, "survives": prediction.survives(flap_ps / PS_PER_NS)} for flap_ps in flaps_ps
    ]
    return {"flaps": flaps} if flaps else {}


def _cells(prediction: "Prediction", flap_ns: float | None) -> tuple[str, ...]:
    after = () if flap_ns is None else (_outcome(prediction, flap_ns),)
    longest_ns = prediction.longest_flap_ns
    return (
        prediction.profile.name,
        shown(prediction.interval_ns),
        "any" if math.isinf(longest_ns) else shown(longest_ns),
        shown(prediction.gives_up_ns),
        _interval(prediction),
        *after,
        prediction.basis,
    )


def _interval(prediction: "Prediction") -> str:
    """Return between which times a queue pair gives up, as far as trials tell."""
    interval = prediction.gives_up_interval_ns
    return "unknown" if interval is None else f"{shown(interval[0])} to {shown(interval[1])}"


def _mark(prediction: "Prediction") -> str:
    return "*" if prediction.confidence == "extrapolated" else ""


def _outcome(prediction: "Prediction", flap_ns: float) -> str:
    if prediction.survives(flap_ns):
        return f"resumes at {shown(prediction.resumes_ns(flap_ns))}"
    if math.isinf(prediction.gives_up_ns):
        return "hangs"
    return f"error 12 at {shown(prediction.gives_up_ns)}"


def _source_lines(profile: "TimerProfile") -> Iterable[str]:
    yield f"{profile.name}: {profile.source}"
    if profile.caveat:
        yield f"  but: {profile.caveat}"


def _print_settings(predictions: Iterable["Prediction"]) -> None:
    rows = [
        (
            f"NCCL_IB_TIMEOUT={one.spec.timeout_exponent} NCCL_IB_RETRY_CNT={one.spec.retries}",
            shown(one.interval_ns),
            shown(one.longest_flap_ns),
            shown(one.gives_up_ns),
            _interval(one),
            one.basis,
        )
        for one in predictions
    ]
    print_table(("set", "wait", "longest flap survived", "retry exceeded after", "interval", "basis"), rows)
