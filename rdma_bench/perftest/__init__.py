"""perftest (ib_write_bw, ib_write_lat) as a second way to measure: its command lines, and what it prints."""
