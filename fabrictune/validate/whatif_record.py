"""Record of what network is enough: the variants, their shares, those without a result, and the knees."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.validate.whatif_points import Knee, Refusal, WhatIfPoint, unit_of

KIND = "validate whatif"
BEYOND = -1.0  # in place of an amount that is beyond all that was tried


def whatif_record(
    head: Mapping[str, Any],
    points: Sequence[WhatIfPoint],
    refusals: Sequence[Refusal],
    knees: Sequence[Knee],
    notes: Sequence[str],
) -> RunRecord:
    """Return the record of variants, the job as it is first."""
    tables: dict[str, list[dict[str, Any]]] = {
        "network_variants": [
            {
                **{name: value for name, value in asdict(point).items() if name != "shares"},
                "unit": unit_of(point.family),
            }
            for point in points
        ],
        "network_shares": [
            {"point": row, "axis": axis, "share_fraction": share}
            for row, point in enumerate(points)
            for axis, share in point.shares.items()
        ],
        "network_refusals": [asdict(refusal) for refusal in refusals],
        "network_knees": [
            {
                **{name: BEYOND if value == math.inf else value for name, value in asdict(knee).items()},
                "unit": unit_of(knee.family),
            }
            for knee in knees
        ],
    }
    return RunRecord(
        kind=KIND,
        run={**head, "notes": list(notes)},
        tables={name: to_columns(name, rows) for name, rows in tables.items()},
    )
