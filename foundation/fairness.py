"""How evenly something is shared."""

from fabrictune.foundation.arrays import FloatArray, IntArray


def jain_fairness_index(share_N: FloatArray | IntArray) -> float:
    """Return (sum x)^2 / (n sum x^2): 1 if all N shares are equal, 1/N if one has all.

    Source: Jain, Chiu and Hawe, DEC-TR-301 (1984).
    """
    share_N = share_N / share_N.max()  # so that no square of a whole number overflows
    return float(share_N.sum() ** 2 / (len(share_N) * (share_N**2).sum()))
