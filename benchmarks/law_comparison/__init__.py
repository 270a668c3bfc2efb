"""Congestion-control laws against one another on the traffic of large clusters, paired over seeds.

MegaScale claims that a law with "the principles of Swift and DCQCN" carries all-to-all with fewer pauses and more
throughput, and shows no measurement. Here `hybrid` meets DCQCN as NIC firmware runs it, the same tuned, and others, on
questions of 256 and 1,024 NICs: all-to-all, an incast with bystanders, and a step of the reference trainer's own
traffic, of which field studies say that the law hardly matters.

Every law has the parameters that its file had before the first comparison. A point is one question, law and seed; all
laws of a seed see the same paths. Points are kept as they finish, so a run that was stopped goes on where it was.

Run: `python -m benchmarks.law_comparison`; `--help` for parts of it
"""
