"""Quantiles of 95 % confidence intervals.

Source: Abramowitz and Stegun, 26.7.5.
"""

NORMAL_95 = 1.959964  # two-sided


def student_t_95(freedom: int) -> float:
    """Return the two-sided 95 % quantile of Student's t, within 0.1 % from 3 degrees of freedom on.

    Cornish-Fisher expansion about the normal quantile.
    """
    z, n = NORMAL_95, float(freedom)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return float(sum(term / n**power for power, term in enumerate(terms)))
