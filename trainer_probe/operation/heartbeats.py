"""Heartbeats as JSON values, and back."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fabrictune.trainer_probe.operation.observations import Heartbeat, RankStatus, ServiceStatus, StorageStatus


def heartbeat_values(heartbeat: Heartbeat) -> dict[str, Any]:
    """Return a heartbeat as JSON values."""
    return asdict(heartbeat)


def heartbeat_of(values: Mapping[str, Any]) -> Heartbeat:
    """Return the heartbeat of `heartbeat_values`, after JSON; raises TypeError, ValueError or KeyError for others."""
    return Heartbeat(
        **{
            **values,
            "ranks": tuple(map(_rank_of, values["ranks"])),
            "nic_bytes": {name: (int(pair[0]), int(pair[1])) for name, pair in values["nic_bytes"].items()},
            "log_lines": tuple(values["log_lines"]),
            "storages": tuple(StorageStatus(**storage) for storage in values["storages"]),
            "services": tuple(ServiceStatus(**service) for service in values["services"]),
            "unreachable": tuple(values["unreachable"]),
        }
    )


def _rank_of(values: Mapping[str, Any]) -> RankStatus:
    waits_for = values["waits_for"]
    return RankStatus(
        **{
            **values,
            "issued": {int(group): int(number) for group, number in values["issued"].items()},
            "waits_for": None if waits_for is None else (int(waits_for[0]), int(waits_for[1])),
        }
    )
