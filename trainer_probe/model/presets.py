"""Models by name: small ones to try things with, and those that MegaScale trained.

Source: MegaScale (NSDI'24), Table 1 and section 6.1. The window it used is not published; these attend to everything.
"""

from fabrictune.trainer_probe.model.spec import ModelSpec

MODELS: dict[str, ModelSpec] = {
    "tiny": ModelSpec(width=64, depth=4, num_heads=4, vocabulary=256, sequence=64, window=16),
    "small": ModelSpec(width=256, depth=4, num_heads=4, vocabulary=1024, sequence=128, window=64),
    "175B": ModelSpec(width=12288, depth=96, num_heads=128, vocabulary=64_000, sequence=2048),
    "530B": ModelSpec(width=20480, depth=105, num_heads=160, vocabulary=64_000, sequence=2048),
}
