"""Published failure tables.

Source: Llama 3 (arXiv 2407.21783), Table 5; ByteRobust (SOSP'25, arXiv 2509.16293), Tables 1 and 6; Kokolis et al.,
Revisiting Reliability in Large-Scale Machine Learning Research Clusters (HPCA'25, arXiv 2410.21680): 6.50 and 2.34
failures per 1000 node-days on RSC-1 and RSC-2, 150 million GPU-hours on both, 16 and 8 thousand A100.
"""

from collections.abc import Mapping

from fabrictune.trainer_probe.survival.failures import FailureCause, FailureTable, Loss

_LLAMA3_DAYS = 54
_LLAMA3_NODES = 2048
_LLAMA3: tuple[tuple[str, int, Loss], ...] = (
    ("Faulty GPU", 148, "node"),
    ("GPU HBM3 Memory", 72, "node"),
    ("Software Bug", 54, "process"),
    ("Network Switch/Cable", 35, "process"),
    ("Host Maintenance", 32, "node"),
    ("GPU SRAM Memory", 19, "node"),
    ("GPU System Processor", 17, "node"),
    ("NIC", 7, "node"),
    ("NCCL Watchdog Timeouts", 7, "process"),
    ("Silent Data Corruption", 6, "node"),
    ("GPU Thermal Interface + Sensor", 6, "node"),
    ("SSD", 3, "node"),
    ("Power Supply", 3, "node"),
    ("Server Chassis", 2, "node"),
    ("IO Expansion Board", 2, "node"),
    ("Dependency", 2, "process"),
    ("CPU", 2, "node"),
    ("System Memory", 2, "node"),
)
_LLAMA3_PLANNED = 47
_BYTEROBUST: tuple[tuple[str, int, Loss, float | None], ...] = (  # seconds until resolved, of Table 6
    ("CUDA Error", 19968, "node", 93),
    ("CPU Overload", 6095, "process", None),
    ("CPU OOM", 5567, "process", None),
    ("Insufficient Disk Space", 2755, "process", None),
    ("Infiniband Error", 1599, "node", 60),
    ("Filesystem Mount", 1176, "node", None),
    ("HDFS Error", 1104, "process", 58),
    ("Container Error", 781, "node", None),
    ("OS Kernel Panic", 203, "node", 109),
    ("GPU Memory Error", 188, "node", 10),
    ("External Service Error", 128, "process", None),
    ("GPU Unavailable", 76, "node", None),
    ("Disk Fault", 47, "node", None),
    ("Job Hang", 5506, "node", 600),
    ("MFU Decline", 442, "node", 600),
    ("NaN value", 148, "node", 4289),
)
_BYTEROBUST_MANUAL = 9582
_GPU_HOURS = 150e6
_META_SHARE = {"RSC-1": 2 / 3, "RSC-2": 1 / 3}
_META_PER_1000 = {"RSC-1": 6.50, "RSC-2": 2.34}
_HOURS_PER_DAY = 24
_GPUS_PER_NODE = 8


def _llama3() -> FailureTable:
    node_days = float(_LLAMA3_DAYS * _LLAMA3_NODES)
    causes = [
        FailureCause(name=name, count=count, exposure_days=node_days, loses=loses) for name, count, loses in _LLAMA3
    ]
    stops = FailureCause(
        name="Planned stops", count=_LLAMA3_PLANNED, exposure_days=_LLAMA3_DAYS, per="job", is_planned=True
    )
    return FailureTable(
        name="llama3",
        source="Llama 3 (arXiv 2407.21783), Table 5: 419 unexpected and 47 planned in 54 days on 16,384 GPUs",
        causes=(*causes, stops),
        notes=("Llama 3's table does not say which failures lose a node's memory: all of its hardware is taken to",),
    )


def _byterobust() -> FailureTable:
    """Return Table 1's shares at the rate of Llama 3's table: Table 1 has no exposure."""
    total = sum(count for _, count, _, _ in _BYTEROBUST)
    per_node_day = _LLAMA3_TOTAL / (_LLAMA3_DAYS * _LLAMA3_NODES)
    exposure = total / per_node_day
    causes = [
        FailureCause(name=name, count=count, exposure_days=exposure, loses=loses, detect_s=0.0, diagnose_s=seconds)
        if seconds is not None
        else FailureCause(name=name, count=count, exposure_days=exposure, loses=loses)
        for name, count, loses, seconds in _BYTEROBUST
    ]
    stops = FailureCause(name="Code changes", count=_BYTEROBUST_MANUAL, exposure_days=exposure, is_planned=True)
    return FailureTable(
        name="byterobust",
        source="ByteRobust (arXiv 2509.16293), Table 1's shares with Table 6's times until resolved",
        causes=(*causes, stops),
        notes=(
            "ByteRobust's Table 1 has no exposure: its causes are taken at the rate of Llama 3's table, and the "
            "interval does not contain what that leaves open (--spread does)",
            "hangs and slow machines take 600 s to locate, within the 2 to 15 minutes that ByteRobust states",
        ),
    )


def _meta(cluster: str) -> FailureTable:
    node_days = _GPU_HOURS * _META_SHARE[cluster] / _GPUS_PER_NODE / _HOURS_PER_DAY
    count = _META_PER_1000[cluster] * node_days / 1000
    cause = FailureCause(name="node failure", count=count, exposure_days=node_days)
    return FailureTable(
        name="meta" if cluster == "RSC-1" else "meta-rsc2",
        source=f"Kokolis et al. (HPCA'25, arXiv 2410.21680): {_META_PER_1000[cluster]:.2f} failures per 1000 node-days "
        f"on {cluster}",
        causes=(cause,),
        notes=(
            f"the exposure of {cluster} is its share by size of 150 million GPU-hours on two clusters; the rate is of "
            "all causes together",
        ),
    )


_LLAMA3_TOTAL = sum(count for _, count, _ in _LLAMA3)
PUBLISHED: Mapping[str, FailureTable] = {
    table.name: table for table in (_llama3(), _byterobust(), _meta("RSC-1"), _meta("RSC-2"))
}
