"""Studies: longer than benchmarks, run by hand, each told of in a dated report."""
