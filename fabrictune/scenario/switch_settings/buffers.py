"""Keys of buffers from pools and profiles: a shared buffer by dynamic thresholds, or ports' own by static ones.

`dynamic_th` n is a threshold of 2^n times what is free. Headroom that differs between ports is left to the engine,
which computes it for each link; so does a switch in the dynamic buffer model.

Source: SAI, saibuffer.h (SHARED_SIZE is SIZE less what is reserved; XOFF_SIZE is headroom beside it); SONiC, "Dynamic
buffer calculation" and "Shared headroom pool".
"""

from collections.abc import Iterator, Mapping
from typing import Any

from fabrictune.foundation.units import format_bytes
from fabrictune.netsim.config.settings import MAX_BUFFER_BYTES
from fabrictune.scenario.switch_settings.classes import Classes
from fabrictune.scenario.switch_settings.settings import Setting, said
from fabrictune.topology.switch_qos import FabricQos
from fabrictune.topology.switch_qos.values import BufferPool, BufferProfile, DynamicProfile
from fabrictune.topology.switch_qos.votes import Elected

WHOLE_POOL = "egress_lossless_pool"  # in the dynamic model its size is the switch's buffer
LOSSLESS_POOL = "ingress_lossless_pool"


def priority_buffer(qos: FabricQos, classes: Classes, queue: int) -> dict[str, Setting]:
    """Return `alpha` and `reserve` of a queue, where a shared buffer is known."""
    if _pool(qos, classes) is None:
        return {}
    if queue not in classes.lossless:
        elected = qos.elected.get(("queue_buffer", queue))
        return _thresholds(elected, elected.value.dynamic_th if elected and _is_profile(elected) else None)
    elected = qos.elected.get(("group_buffer", classes.groups[queue]))
    if elected is not None and isinstance(elected.value, DynamicProfile):
        default = qos.elected.get(("default_dynamic_th",))
        dynamic_th = elected.value.dynamic_th
        if dynamic_th is None and default is not None and default.value is not None:
            return {"alpha": said(_alpha(default.value), default)}
        return _thresholds(elected, dynamic_th)
    return _thresholds(elected, elected.value.dynamic_th if elected and _is_profile(elected) else None)


def buffer_keys(qos: FabricQos, classes: Classes) -> dict[str, Any]:
    """Return `buffer`, and under `own_buffers` the keys of `pfc` that are about buffers."""
    own = {**_headroom(qos, classes), **_static(qos, classes)}
    pool = _pool(qos, classes)
    if pool is None or not isinstance(pool.value, BufferPool) or pool.value.size_bytes is None:
        return {"own_buffers": own}
    headroom_bytes = pool.value.xoff_bytes or 0
    size_bytes = min(pool.value.size_bytes + headroom_bytes, MAX_BUFFER_BYTES)
    keys = {"size": said(f"{size_bytes} B", pool, "size")}
    if headroom_bytes:
        keys["headroom_pool"] = said(f"{min(headroom_bytes, MAX_BUFFER_BYTES)} B", pool, "xoff")
    offsets = {profile.value.xon_offset_bytes: profile for profile in _profiles(qos, classes).values()}
    if len(offsets) == 1 and (offset_bytes := next(iter(offsets))):
        keys["resume_offset"] = said(f"{min(offset_bytes, MAX_BUFFER_BYTES)} B", offsets[offset_bytes], "xon_offset")
    return {"buffer": keys, "own_buffers": own}


def buffer_remarks(qos: FabricQos, classes: Classes) -> Iterator[str]:
    """Yield what is assumed of buffers, and what the engine lacks."""
    yield from _pool_remarks(qos, classes)
    for queue in classes.lossless:
        group = classes.groups[queue]
        elected = qos.elected.get(("group_buffer", group))
        if elected is None or elected.value is None:
            made = "the running switch makes one from pg_profile_lookup.ini"
            yield f"queue {queue}: no BUFFER_PG for priority group {group}: {made}; alpha 1 and computed headroom taken"
        elif isinstance(elected.value, DynamicProfile):
            yield f"queue {queue}: headroom by the dynamic buffer model: the engine computes it for each link"
        elif isinstance(elected.value, BufferProfile):
            yield from _profile_remarks(queue, elected.value, qos)
    for queue in sorted(set(classes.listed) - set(classes.lossless)):
        profile = qos.value("queue_buffer", queue)
        if profile is None:
            yield f"queue {queue}: no profile in BUFFER_QUEUE: alpha 1 taken"
        elif isinstance(profile, BufferProfile) and profile.static_th_bytes is not None:
            yield f"queue {queue}: a static limit of {format_bytes(profile.static_th_bytes)}: not in the engine"


def _profile_remarks(queue: int, profile: BufferProfile, qos: FabricQos) -> Iterator[str]:
    if profile.xon_offset_bytes is None and profile.xon_bytes:
        yield f"queue {queue}: xon {profile.xon_bytes} B: in a shared buffer the engine resumes two frames below xoff"
    size_bytes = max((pool.value.size_bytes or 0 for key, pool in qos.elected.items() if key[0] == "pool"), default=0)
    egress = qos.value("queue_buffer", queue)
    if isinstance(egress, BufferProfile) and 0 < (egress.static_th_bytes or size_bytes) < size_bytes:
        yield f"queue {queue}: an egress limit of {format_bytes(egress.static_th_bytes or 0)}: not in the engine"


def _pool_remarks(qos: FabricQos, classes: Classes) -> Iterator[str]:
    pool = _pool(qos, classes)
    if pool is None:
        yield "no buffer pool of lossless traffic with a size: each port has the engine's own buffer (pfc.buffer)"
        return
    if pool.value.row == WHOLE_POOL:
        yield f"{LOSSLESS_POOL} has no size, which the switch computes: that of {WHOLE_POOL} is taken"
    if pool.value.xoff_bytes:
        yield f"the pool's xoff, {pool.value.xoff_bytes} B, is headroom beside its size: buffer.size is their sum"
    if pool.value.size_bytes + (pool.value.xoff_bytes or 0) > MAX_BUFFER_BYTES:
        yield f"a buffer of {format_bytes(pool.value.size_bytes)}: the engine's limit of 1 GiB taken"
    if set(classes.listed) - set(classes.lossless):
        yield "lossy queues have a pool of their own on the switch; in the engine they share one buffer"
    xoffs = {profile.value.xoff_bytes for profile in _profiles(qos, classes).values()}
    others = [vote for group in classes.groups.values() for vote in _other_xoffs(qos, group)]
    if len(xoffs) > 1 or others:
        yield "headroom (xoff) differs between ports: the engine computes it for each link by its rate and delay"


def _pool(qos: FabricQos, classes: Classes) -> Elected | None:
    """Return the pool of lossless traffic that has a size; None for static thresholds, whose limits are their own."""
    profiles = _profiles(qos, classes).values()
    if any(profile.value.static_th_bytes is not None for profile in profiles):
        return None
    names = [*(profile.value.pool for profile in profiles), LOSSLESS_POOL, WHOLE_POOL]
    pools = (qos.elected.get(("pool", name)) for name in names)
    return next((pool for pool in pools if pool is not None and pool.value.size_bytes), None)


def _profiles(qos: FabricQos, classes: Classes) -> Mapping[int, Elected]:
    """Return the profile of each lossless queue's priority group that has one."""
    found = {queue: qos.elected.get(("group_buffer", group)) for queue, group in classes.groups.items()}
    return {queue: elected for queue, elected in found.items() if elected is not None and _is_profile(elected)}


def _is_profile(elected: Elected) -> bool:
    return isinstance(elected.value, BufferProfile)


def _thresholds(elected: Elected | None, dynamic_th: int | None) -> dict[str, Setting]:
    if elected is None or dynamic_th is None:
        return {"alpha": Setting(value=1, source="assumed: no dynamic threshold is said")}
    keys = {"alpha": said(_alpha(dynamic_th), elected, "dynamic_th")}
    if isinstance(elected.value, BufferProfile) and elected.value.reserve_bytes:
        keys["reserve"] = said(f"{min(elected.value.reserve_bytes, MAX_BUFFER_BYTES)} B", elected, "size")
    return keys


def _alpha(dynamic_th: int) -> str:
    return f"{2.0**dynamic_th:g}"


def _headroom(qos: FabricQos, classes: Classes) -> dict[str, Setting]:
    """Return `headroom` where all lossless groups of all ports have the same."""
    profiles = _profiles(qos, classes)
    xoffs = {profile.value.xoff_bytes: profile for profile in profiles.values()}
    others = [vote for group in classes.groups.values() for vote in _other_xoffs(qos, group)]
    if len(xoffs) != 1 or others or len(profiles) < len(classes.lossless):
        return {}
    xoff_bytes, elected = next(iter(xoffs.items()))
    return {} if not xoff_bytes else {"headroom": said(f"{min(xoff_bytes, MAX_BUFFER_BYTES)} B", elected, "xoff")}


def _other_xoffs(qos: FabricQos, group: int) -> Iterator[int | None]:
    elected = qos.elected[("group_buffer", group)]
    for vote, _ in elected.others:
        xoff_bytes = vote.value.xoff_bytes if isinstance(vote.value, BufferProfile) else None
        if not _is_profile(elected) or xoff_bytes != elected.value.xoff_bytes:
            yield xoff_bytes


def _static(qos: FabricQos, classes: Classes) -> dict[str, Setting]:
    """Return `buffer`, `xoff` and `headroom` of ports' own buffers where lossless groups have static thresholds."""
    profiles = list(_profiles(qos, classes).values())
    limits = {profile.value.static_th_bytes for profile in profiles}
    limit_bytes = next(iter(limits)) if len(limits) == 1 else None
    if limit_bytes is None:
        return {}
    profile = profiles[0].value
    xoff_bytes, headroom_bytes = limit_bytes + profile.reserve_bytes, profile.xoff_bytes or 0
    if xoff_bytes + headroom_bytes > MAX_BUFFER_BYTES:
        return {}
    keys = {"buffer": said(f"{xoff_bytes + headroom_bytes} B", profiles[0], "static_th")}
    keys["xoff"] = said(f"{xoff_bytes} B", profiles[0], "static_th")
    return keys | ({"headroom": said(f"{headroom_bytes} B", profiles[0], "xoff")} if profile.xoff_bytes else {})
