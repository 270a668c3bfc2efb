"""Published profiles against what they were taken from."""

import pytest

from fabrictune.rdma_bench.timers.profiles import KNOWN_PROFILES

# unionxic/rdma-fault-characterization, harness/ack_timeout: T, R, trials, least and greatest milliseconds.
TABLES_A1_AND_A2 = """
14 7 12 3547.1 3751.7, 16 7 5 3661.6 3738.7, 17 7 5 7151.3 7250.5, 18 7 5 14667.6 15037.6, 19 7 5 28451.7 29701.0
20 7 5 59053.5 59766.3, 14 1 3 440.5 536.7, 14 2 3 977.2 1078.6, 14 3 3 1347.5 1514.4, 14 4 3 2051.2 2148.2
14 5 3 2587.9 2679.7, 14 6 3 3115.2 3125.2, 10 7 6 3659.0 3685.7, 12 7 6 3660.8 3739.8, 15 1 6 439.6 534.4
15 3 6 1513.0 1613.6, 15 5 6 2587.1 2675.7, 15 7 6 3660.5 3758.2, 17 1 6 976.5 1059.2, 17 2 6 1781.5 2143.5
17 3 6 2848.7 2940.1, 17 5 6 4996.1 5101.7
"""
TABLE_B = """
8 0 5 2.17 2.34, 8 1 3 3.10 3.45, 8 2 3 4.40 4.58, 8 3 5 5.16 5.59, 8 5 3 7.33 7.35, 8 7 10 9.33 9.74
10 0 5 6.70 8.75, 10 3 5 19.46 21.15, 10 7 5 37.87 38.10, 12 0 5 29.12 29.90, 12 3 5 79.58 80.04
12 7 5 146.65 149.68, 14 0 5 104.98 119.36, 14 3 5 306.10 306.49, 14 7 10 574.69 604.34, 16 7 3 2319.30 2333.41
17 7 3 4571.05 4735.71, 18 7 2 9140.50 9299.25, 20 7 2 37587.71 38290.33
"""


@pytest.mark.parametrize(("name", "tables"), [("connectx-6", TABLES_A1_AND_A2), ("connectx-6-no-floor", TABLE_B)])
def test_measured_profiles_have_the_study_s_trials(name: str, tables: str) -> None:
    """Each row's settings, number of trials and range of times, and each exponent among those tried."""
    rows = [tuple(map(float, row.split())) for line in tables.split("\n") for row in line.split(",") if row.strip()]
    profile = KNOWN_PROFILES[name]
    tried = [(one.timeout, one.retries, one.num_trials, one.least_ns, one.greatest_ns) for one in profile.tried]
    assert tried == [(*row[:3], round(row[3] * 1e6), round(row[4] * 1e6)) for row in rows]
    assert profile.tried_exponents == tuple(sorted({int(row[0]) for row in rows}))
