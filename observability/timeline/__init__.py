"""Timelines of jobs: what every rank did, on one clock, with what waited for what, as a file that Perfetto opens."""
