"""Keys of a scenario from the settings of a fabric's switches: `engine`, `routing`, and the priority of its traffic.

A priority of the engine is a queue of the switches. Listed are the lossless queues, and those that data and congestion
notifications lead to; a queue that nothing leads to changes no run. What the engine has no setting for is a remark.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fabrictune.scenario.switch_settings.buffers import buffer_keys, buffer_remarks, priority_buffer
from fabrictune.scenario.switch_settings.classes import Classes
from fabrictune.scenario.switch_settings.hashing import hash_remarks, routing_keys
from fabrictune.scenario.switch_settings.settings import Setting, said
from fabrictune.topology.switch_qos import FabricQos
from fabrictune.topology.switch_qos.switch import Key
from fabrictune.topology.switch_qos.votes import Elected

MAX_REMARKED = 4  # other values that one line names
DEFAULT_CNP_DSCP = 48
ENDLESS = "24 h"  # a storm that SONiC never declares over
TABLES = (
    *("DSCP_TO_TC_MAP", "TC_TO_QUEUE_MAP", "PORT_QOS_MAP", "QUEUE", "WRED_PROFILE", "SCHEDULER"),
    *("BUFFER_POOL", "BUFFER_PROFILE", "BUFFER_PG", "BUFFER_QUEUE", "PFC_WD", "SWITCH_HASH"),
)
NAMES = {
    "pfc_enable": "PFC priorities",
    "pfcwd_sw_enable": "priorities of the software watchdog",
    "dscp_to_tc_map": "map of DSCP",
    "tc_to_queue_map": "map of traffic classes to queues",
    "tc_to_pg_map": "map of traffic classes to priority groups",
    "pfc_to_queue_map": "map of PFC priorities to queues",
    "watchdog": "PFC watchdog",
    "wred": "WRED profile of queue",
    "scheduling": "scheduler of queue",
    "queue_buffer": "buffer of queue",
    "group_buffer": "buffer of priority group",
    "pool": "buffer pool",
    "default_dynamic_th": "default threshold of lossless buffers",
    "hash": "hash",
}


@dataclass(frozen=True, kw_only=True)
class Marking:
    """What NICs mark, which no switch's configuration says; data without a DSCP take the lowest lossless queue."""

    dscp: int | None = None
    cnp_dscp: int = DEFAULT_CNP_DSCP


@dataclass(frozen=True, kw_only=True)
class SwitchKeys:
    """Keys with their places, and what is to be known of them."""

    engine: Mapping[str, Any]  # trees with `Setting` leaves
    routing: Mapping[str, Any]
    priority: Setting  # of the traffic
    remarks: tuple[str, ...]
    unused: tuple[str, ...]  # a line for each table


def switch_keys(qos: FabricQos, marking: Marking) -> SwitchKeys:
    """Return the keys of a scenario; raises FabricError where no queue can be told."""
    classes = Classes.of(qos, dscp=marking.dscp, cnp_dscp=marking.cnp_dscp)
    engine = {
        "queues": {
            "priorities": [_priority(qos, classes, queue) for queue in classes.listed],
            "cnp": classes.cnp_setting,
        },
        "pfc": _pfc(qos, classes),
        **buffer_keys(qos, classes),
    }
    return SwitchKeys(
        engine={key: value for key, value in _merged(engine).items() if value},
        routing=routing_keys(qos),
        priority=classes.data_setting,
        remarks=(
            *_missing(qos),
            *classes.remarks,
            *_pfc_remarks(qos, classes),
            *_wred_remarks(qos, classes),
            *buffer_remarks(qos, classes),
            *hash_remarks(qos),
            *_differences(qos, classes),
            *(line for switch in qos.switches for line in switch.dangling),
        ),
        unused=tuple(qos.unused()),
    )


def _missing(qos: FabricQos) -> Iterator[str]:
    """Yield the QoS tables that no file has."""
    missing = [table for table in TABLES if not any(table in switch.tables.by_name for switch in qos.switches)]
    if missing:
        yield f"tables that no file has: {', '.join(missing)}"


def _merged(engine: dict[str, Any]) -> dict[str, Any]:
    """Return the engine's keys with those of buffers below `pfc` where they belong."""
    own = engine.pop("own_buffers", {})
    return {**engine, "pfc": {**engine["pfc"], **own}}


def _priority(qos: FabricQos, classes: Classes, queue: int) -> dict[str, Any]:
    scheduling = qos.elected.get(("scheduling", queue))
    weight = (
        said(scheduling.value.weight, scheduling, "type" if scheduling.value.weight == 0 else "weight")
        if scheduling and scheduling.value
        else Setting(value=1, source="assumed: no scheduler is bound to it")
    )
    return {
        "priority": Setting(value=queue, source=classes.why_listed(queue)),
        "weight": weight,
        "lossless": classes.lossless_setting(queue),
        **priority_buffer(qos, classes, queue),
        "ecn": _ecn(qos, queue),
    }


def _ecn(qos: FabricQos, queue: int) -> dict[str, Any]:
    elected = qos.elected.get(("wred", queue))
    curve = elected.value if elected else None
    if elected is None or curve is None:
        source = f"{elected.first.where}: no WRED profile" if elected else "no WRED profile"
        return {"enabled": Setting(value=False, source=source)}
    if not curve.marks:
        return {"enabled": said(False, elected, "ecn")}
    keys = {
        "kmin": said(f"{curve.min_bytes} B", elected, "green_min_threshold"),
        "kmax": said(f"{max(curve.max_bytes, curve.min_bytes + 1)} B", elected, "green_max_threshold"),
        "pmax": said(f"{curve.percent} %", elected, "green_drop_probability"),
    }
    return keys | ({"not_capable": said("drop", elected, "wred_green_enable")} if curve.drops else {})


def _pfc(qos: FabricQos, classes: Classes) -> dict[str, Any]:
    if not classes.lossless:
        return {"enabled": classes.lossless_setting(classes.data)}
    elected = qos.elected.get(("watchdog",))
    watchdog = elected.value if elected else None
    if elected is None or watchdog is None or watchdog.action == "alert":
        return {}
    restore = ENDLESS if watchdog.restoration_ms is None else f"{watchdog.restoration_ms} ms"
    keys = {
        "detect": said(f"{watchdog.detection_ms} ms", elected, "detection_time"),
        "restore": said(restore, elected, "restoration_time"),
        "action": said(watchdog.action, elected, "action"),
    }
    return {"watchdog": keys}


def _pfc_remarks(qos: FabricQos, classes: Classes) -> Iterator[str]:
    watchdog = qos.value("watchdog")
    if watchdog is not None and watchdog.action == "alert":
        yield "the watchdog's action alert only logs storms: no watchdog in the engine"
    if watchdog is not None and watchdog.restoration_ms is None:
        yield f"the watchdog has no restoration_time, so a storm never ends: {ENDLESS} taken"
    enabled, watched = qos.value("pfc_enable"), qos.value("pfcwd_sw_enable")
    if watchdog is not None and enabled and watched is not None and set(watched) != set(enabled):
        yield (
            f"pfcwd_sw_enable has {_listed(watched)}, pfc_enable {_listed(enabled)}: "
            "the engine's watchdog is for all lossless priorities"
        )
    if watchdog is not None and (interval := qos.value("watchdog_global", "POLL_INTERVAL")):
        yield f"POLL_INTERVAL {interval} ms: the engine's watchdog is exact, SONiC's acts up to that much later"
    if qos.value("watchdog_global", "BIG_RED_SWITCH") == "enable":
        yield "BIG_RED_SWITCH is enabled, which drops on all watched queues: not in the engine"


def _wred_remarks(qos: FabricQos, classes: Classes) -> Iterator[str]:
    for queue in classes.listed:
        curve = qos.value("wred", queue)
        if curve is None:
            continue
        if curve.marks and curve.max_bytes <= curve.min_bytes:
            yield f"queue {queue}: equal WRED thresholds are a step: kmax is kmin and 1 B"
        if not curve.marks and curve.drops:
            yield f"queue {queue}: WRED drops at random without marking: not in the engine, which does neither"


def _differences(qos: FabricQos, classes: Classes) -> Iterator[str]:
    """Yield a line for each setting in use that not all have."""
    for key, elected in qos.elected.items():
        name = NAMES.get(str(key[0]))
        if name and elected.others and _is_used(key, classes):
            yield f"{name}{''.join(f' {part}' for part in key[1:])}: {_others(elected)}"
    for tier, elected in qos.seed_by_tier.items():
        if elected.others:
            yield f"seed of the hash at tier {tier}: {_others(elected)}"


def _is_used(key: Key, classes: Classes) -> bool:
    if key[0] in ("wred", "scheduling", "queue_buffer"):
        return key[1] in classes.listed
    return key[0] != "group_buffer" or key[1] in classes.groups


def _others(elected: Elected) -> str:
    found = [f"{count} at {vote.where}" for vote, count in elected.others[:MAX_REMARKED]]
    more = len(elected.others) - MAX_REMARKED
    found += [f"{more} more values"] if more > 0 else []
    return f"{elected.num_votes} of {elected.num_voters} taken; others: {', '.join(found)}"


def _listed(numbers: tuple[int, ...]) -> str:
    return ",".join(str(number) for number in numbers) or "none"
