"""Hash models: how a switch chooses among equal-cost ports."""

from fabrictune.topology.hashing.five_tuples import FIVE_TUPLE, FiveTuples, HeaderField
from fabrictune.topology.hashing.functions import HASHES, HashFunction
from fabrictune.topology.hashing.spec import HashSpec, TierHash

__all__ = ["FIVE_TUPLE", "HASHES", "FiveTuples", "HashFunction", "HashSpec", "HeaderField", "TierHash"]
