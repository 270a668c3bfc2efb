"""The ground: units, errors, seeds, record tables, the parallel layout and the RoCEv2 wire format."""
