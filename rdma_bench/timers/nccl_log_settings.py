"""Timer settings in a log of NCCL: what it names, what it leaves open, and what is assumed for that.

Only networks over verbs have these timers: NCCL's own, and the plug-in with SHARP. Others retransmit by themselves, and
no prediction is made for them. A log without a version leaves the default timeout open, so that every default is
possible. NCCL never logs an adapter's model: where nobody names a profile, the devices' names choose one, and that is
listed as assumed. A host that logs its environment without a setting has NCCL's default.

Source: NVIDIA/nccl, src/plugin/net.cc, and Mellanox/nccl-rdma-sharp-plugins (names of networks); Linux,
drivers/infiniband (names of devices).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fabrictune.collectives.nccl.completion_errors import CompletionError
from fabrictune.collectives.nccl.job_summary import is_libfabric
from fabrictune.collectives.nccl.log import NcclLog
from fabrictune.collectives.nccl.log_facts import NETWORK_PREFIX
from fabrictune.foundation.retransmission import MAX_EXPONENT, MAX_RETRIES
from fabrictune.rdma_bench.timers.nccl_defaults import nccl_default, possible_defaults
from fabrictune.rdma_bench.timers.prediction import RetransmissionSpec
from fabrictune.rdma_bench.timers.profiles import DEFAULT_PROFILE, KNOWN_PROFILES, TimerProfile

TIMEOUT, RETRIES = "NCCL_IB_TIMEOUT", "NCCL_IB_RETRY_CNT"
_VERBS = re.compile(r"IB(?:ext\w*)?")
_PROFILE_OF_DRIVER = {"mlx5_": DEFAULT_PROFILE, "bnxt_re": "bnxt", "rxe": "soft-roce"}
# Names that udev gives say where a device is plugged in, and nothing of its driver.
_NAMED_BY_PLACE = re.compile(r"(?:roce|ib|rdma)(?:P\d+)?[ops]\d")


@dataclass(frozen=True, kw_only=True)
class TimerSettings:
    """The timer settings of a job, as far as its log has them."""

    version: str  # of NCCL; "" where the log names none
    networks: tuple[str, ...]  # in the log, with libfabric's provider
    timeouts: Mapping[str, str]  # NCCL_IB_TIMEOUT of each host that logs its environment, "" for an unknown default
    counts: Mapping[str, str]  # NCCL_IB_RETRY_CNT
    specs: tuple[RetransmissionSpec, ...]  # possible ones; none for a network without these timers
    assumptions: tuple[str, ...]


def timer_settings(
    log: NcclLog, errors: Sequence[CompletionError], *, fewest_retries: int, nccl: str = ""
) -> TimerSettings:
    """Return the settings; of several hosts' retry counts the least from `fewest_retries` on counts.

    `nccl` is a version that takes the place of the log's. Raises InputError for what is none.
    """
    versions = [nccl] if nccl else list(dict.fromkeys(fact.version for fact in log.versions))
    where = "--nccl" if nccl else "the log's version"
    defaults = [nccl_default(version, where=where) for version in versions] or list(possible_defaults())
    networks, is_verbs = _networks(log, errors)
    specs = {_spec(log, default, fewest_retries): None for default in defaults}
    timeouts, counts = (_values(log, name) for name in (TIMEOUT, RETRIES))
    only = defaults[0] if len(defaults) == 1 else None
    return TimerSettings(
        version=", ".join(versions),
        networks=networks,
        timeouts={host: text or (str(only.timeout_exponent) if only else "") for host, text in timeouts.items()},
        counts={host: text or str(defaults[0].retries) for host, text in counts.items()},
        specs=tuple(sorted(specs, key=lambda spec: (spec.timeout_exponent, spec.retries))) if is_verbs else (),
        assumptions=tuple(_assumptions(log, versions, specs, networks)) if is_verbs else (),
    )


def profile_of_devices(log: NcclLog) -> tuple[TimerProfile | None, str]:
    """Return the profile that the names of a log's devices suggest, None where none is known, and the assumption."""
    names = ", ".join(dict.fromkeys(fact.name for fact in log.devices))
    drivers = {_driver(fact.name) for fact in log.devices}
    stand_in = KNOWN_PROFILES[DEFAULT_PROFILE]
    if drivers <= {"mlx5_", ""}:
        what = (
            f"the log's devices ({names}), whose model NCCL does not log" if names else "devices the log does not name"
        )
        return stand_in, (
            f"adapter: {stand_in.name} ({_model(stand_in)}) stands in for {what}; no ConnectX-7 or BlueField-3 has "
            "been measured: --profile names another"
        )
    name = _PROFILE_OF_DRIVER.get(drivers.pop(), "") if len(drivers) == 1 else ""
    if not name:
        return None, ""
    return KNOWN_PROFILES[name], (
        f"adapter: {name}, by the name of the log's devices ({names}); --profile names another"
    )


def given_profile(profile: TimerProfile) -> str:
    """Return what is assumed of a profile that was named: that it is the job's adapter."""
    model = f" is the profile of a {_model(profile)}" if profile.device else " is taken as named"
    return f"adapter: NCCL does not log its model; {profile.name}{model}"


def is_usable(text: str, allowed: range) -> bool:
    """Return whether a setting is a number that means something."""
    return text.isdecimal() and len(text) < 4 and int(text) in allowed


def _model(profile: TimerProfile) -> str:
    return profile.device + (f", firmware {profile.firmware}" if profile.firmware else "")


def _driver(device: str) -> str:
    """Return the prefix that a driver gives its devices, "" for a name that tells nothing, the name of any other."""
    if _NAMED_BY_PLACE.match(device):
        return ""
    return next((prefix for prefix in _PROFILE_OF_DRIVER if device.startswith(prefix)), device)


def _networks(log: NcclLog, errors: Sequence[CompletionError]) -> tuple[tuple[str, ...], bool]:
    """Return the networks' names, and whether one of them has these timers or the log names none."""
    names = [fact.name for fact in log.networks]
    names += [fact.transport.removeprefix(NETWORK_PREFIX) for fact in log.channels if _is_network(fact.transport)]
    names += ["IB"] if errors else []
    known = tuple(dict.fromkeys(names))
    is_verbs = not known or any(_VERBS.fullmatch(name) for name in known)
    providers = ", ".join(dict.fromkeys(fact.name for fact in log.providers))
    labels = (f"{name} ({providers})" if providers and is_libfabric(name) else name for name in known)
    return tuple(labels), is_verbs and (bool(known) or not providers)


def _is_network(transport: str) -> bool:
    return transport.startswith(NETWORK_PREFIX)


def _values(log: NcclLog, name: str) -> dict[str, str]:
    """Return a setting on every host that logs its environment, "" for a default."""
    hosts = sorted({fact.host for fact in log.environment})
    return {**dict.fromkeys(hosts, ""), **log.settings(name)}


def _spec(log: NcclLog, default: RetransmissionSpec, fewest_retries: int) -> RetransmissionSpec:
    """Return the settings of the first host to give up."""
    exponents, counts = range(MAX_EXPONENT + 1), range(fewest_retries, MAX_RETRIES + 1)
    return RetransmissionSpec(
        timeout_exponent=_least_usable(_values(log, TIMEOUT), exponents, default.timeout_exponent),
        retries=_least_usable(_values(log, RETRIES), counts, default.retries),
    )


def _least_usable(values: Mapping[str, str], allowed: range, default: int) -> int:
    texts = (text or str(default) for text in values.values())
    return min((int(text) for text in texts if is_usable(text, allowed)), default=default)


def _assumptions(
    log: NcclLog, versions: Sequence[str], specs: Mapping[RetransmissionSpec, None], networks: Sequence[str]
) -> Iterator[str]:
    if not versions and len(specs) > 1:
        exponents = " or ".join(", ".join(str(spec.timeout_exponent) for spec in specs).rsplit(", ", 1))
        yield (
            f"timeout: {exponents}, the defaults of NCCL before 2.14, before 2.23.4 and since, as the log names no "
            "version; say it with --nccl"
        )
    if not log.environment:
        yield f"settings: no host logs its environment, so that {TIMEOUT} and {RETRIES} count as not set"
    others = [name for name in networks if not _VERBS.fullmatch(name)]
    if not networks:
        yield "network: the log does not name it; these timers hold for NET/IB alone"
    elif others:
        yield f"network: the log also names {', '.join(others)}, for which these timers do not hold"
