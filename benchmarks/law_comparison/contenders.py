"""Who is compared: what each changes in a question's scenario."""

from collections.abc import Mapping

from fabrictune.foundation.settings.changes import Changes

BASELINE = "dcqcn-firmware"

# Barre (USENIX ATC'25), table 2, gives a range for each parameter its authors tune; here each is the middle of its own.
_TUNED = {
    "rate_reduce_monitor_period": "2500 ns",  # 1 to 4 us
    "rpg_min_dec_fac": "89 %",  # 80 to 98 %
    "rpg_ai_rate": "14 Mbps",  # 8 to 20 Mbps
    "rpg_time_reset": "60 us",  # 20 to 100 us
}

# The best of 120 points of `fabrictune sim sweep benchmarks/law_comparison/tuning/dcqcn-firmware.yaml`, in whole units
# of a NIC: tuned by TPE for messages beside an incast, on a fabric and on seeds that no question here has.
_SWEPT = {
    "rate_reduce_monitor_period": "6 us",
    "rpg_min_dec_fac": "50 %",
    "rpg_ai_rate": "101 Mbps",
    "rpg_time_reset": "29 us",
    "dce_tcp_g": 16,
}

CONTENDERS: Mapping[str, Changes] = {
    BASELINE: {"law": "dcqcn_firmware"},
    "dcqcn-tuned": {
        "law": {"name": "dcqcn_firmware", "parameters": _TUNED},
        "engine.cnp.interval": "1 us",  # 0 to 2 us
    },
    "dcqcn-swept": {
        "law": {"name": "dcqcn_firmware", "parameters": _SWEPT},
        "engine.cnp.interval": "17 us",
    },
    "dcqcn-paper": {"law": {"name": "dcqcn", "defaults": "paper"}, "engine.cnp.interval": "50 us"},
    "barre": {"law": "barre", "engine.cnp.interval": "1 us"},
    "swift": {"law": "swift"},
    "hpcc": {"law": "hpcc"},
    "hybrid": {"law": "hybrid"},
    "none": {"law": "none"},
}
