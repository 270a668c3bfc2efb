"""Hash models: how a switch chooses among equal-cost ports."""

from topology.hashing.five_tuples import FIVE_TUPLE, FiveTuples, HeaderField
from topology.hashing.functions import HASHES, HashFunction
from topology.hashing.spec import HashSpec, TierHash

__all__ = ["FIVE_TUPLE", "HASHES", "FiveTuples", "HashFunction", "HashSpec", "HeaderField", "TierHash"]
