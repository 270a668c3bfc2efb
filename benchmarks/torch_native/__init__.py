"""The serial GPT trained by torch's own means alone: DTensor, FSDP2 and its interleaved pipeline.

What the reference trainer is held against, in speed by `benchmarks.trainer` and in gradients by the tests.
"""
