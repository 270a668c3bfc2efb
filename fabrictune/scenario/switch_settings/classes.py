"""Traffic classes of a fabric: the queues that data and notifications lead to, and which queues are lossless."""

from collections.abc import Mapping
from dataclasses import dataclass

from fabrictune.scenario.switch_settings.settings import Setting, said
from fabrictune.topology.switch_qos import FabricQos
from fabrictune.topology.switch_qos.votes import Elected

DEFAULT_QUEUE = 3  # of data where nothing is lossless and no DSCP is given: a scenario's own default


@dataclass(frozen=True, kw_only=True)
class Classes:
    """Queues in use; `groups` are the priority groups of the lossless ones by queue."""

    lossless: tuple[int, ...]
    data: int
    cnp: int
    data_setting: Setting
    cnp_setting: Setting
    groups: Mapping[int, int]
    enabled: Elected | None
    remarks: tuple[str, ...]

    @classmethod
    def of(cls, qos: FabricQos, *, dscp: int | None, cnp_dscp: int) -> "Classes":
        """Return the classes of what most ports have."""
        enabled = qos.elected.get(("pfc_enable",))
        to_queue = dict(qos.value("pfc_to_queue_map") or ())
        lossless = tuple(
            sorted({to_queue.get(number, number) for number in (enabled.value if enabled else None) or ()})
        )
        data_setting, data_remarks = _queue_of_data(qos, lossless, dscp)
        cnp_setting, cnp_remarks = _queue_of(qos, cnp_dscp, "CNPs")
        return cls(
            lossless=lossless,
            data=int(data_setting.value),
            cnp=int(cnp_setting.value),
            data_setting=data_setting,
            cnp_setting=cnp_setting,
            groups=_groups(qos, lossless),
            enabled=enabled,
            remarks=(*data_remarks, *cnp_remarks),
        )

    @property
    def listed(self) -> tuple[int, ...]:
        """The queues that the engine has, ascending."""
        return tuple(sorted({*self.lossless, self.data, self.cnp}))

    def why_listed(self, queue: int) -> str:
        """Return what a queue is listed for."""
        uses = {"lossless": queue in self.lossless, "data": queue == self.data, "CNPs": queue == self.cnp}
        return ", ".join(use for use, is_so in uses.items() if is_so)

    def lossless_setting(self, queue: int) -> Setting:
        """Return whether a queue is lossless, and where that is said."""
        if self.enabled is None or self.enabled.value is None:
            where = f"{self.enabled.first.where}: " if self.enabled else ""
            return Setting(value=False, source=f"{where}no pfc_enable")
        return said(queue in self.lossless, self.enabled)


def _queue_of_data(qos: FabricQos, lossless: tuple[int, ...], dscp: int | None) -> tuple[Setting, tuple[str, ...]]:
    if dscp is not None:
        setting, remarks = _queue_of(qos, dscp, "data")
        is_lossy = bool(lossless) and setting.value not in lossless
        warning = f"data with DSCP {dscp} lead to queue {setting.value}, which is lossy; lossless are {list(lossless)}"
        return setting, (*remarks, *((warning,) if is_lossy else ()))
    if not lossless:
        remark = f"no PFC priority is enabled and no DSCP is given: data take queue {DEFAULT_QUEUE}"
        return Setting(value=DEFAULT_QUEUE, source="assumed"), (remark,)
    queue = lossless[0]
    led = [str(number) for number in range(64) if _follow(qos, number)[0] == queue]
    marked = f"NICs must mark DSCP {', '.join(led)} for it" if led else "no DSCP leads to it"
    remark = f"data take queue {queue}, the lowest lossless one: {marked}; --dscp says what yours mark"
    return Setting(value=queue, source="assumed: the lowest lossless queue"), (remark,)


def _queue_of(qos: FabricQos, dscp: int, what: str) -> tuple[Setting, tuple[str, ...]]:
    queue, elected = _follow(qos, dscp)
    if elected is None:
        remark = f"no DSCP_TO_TC_MAP: {what} with DSCP {dscp} take queue {queue}, by DSCP / 8"
        return Setting(value=queue, source=f"assumed: DSCP {dscp} / 8"), (remark,)
    missing = dscp not in dict(elected.value)
    remarks = (f"the map of DSCP lacks {dscp}: {what} take queue {queue}, that of traffic class 0",) if missing else ()
    return said(queue, elected, "" if missing else str(dscp)), remarks


def _follow(qos: FabricQos, dscp: int) -> tuple[int, Elected | None]:
    """Return the queue that a DSCP leads to, and the map it is looked up in, None where there is none."""
    elected = qos.elected.get(("dscp_to_tc_map",))
    has_map = elected is not None and elected.value is not None
    traffic_class = dict(elected.value).get(dscp, 0) if elected and has_map else dscp // 8
    to_queue: dict[int, int] = dict(qos.value("tc_to_queue_map") or ())
    return to_queue.get(traffic_class, traffic_class), elected if has_map else None


def _groups(qos: FabricQos, lossless: tuple[int, ...]) -> dict[int, int]:
    """Return the priority group of each lossless queue: that of the first traffic class that leads to it."""
    to_queue, to_group = (dict(qos.value(name) or ()) for name in ("tc_to_queue_map", "tc_to_pg_map"))
    groups = {}
    for queue in lossless:
        leading = [number for number in range(8) if to_queue.get(number, number) == queue]
        groups[queue] = to_group.get(leading[0], leading[0]) if leading else queue
    return groups
