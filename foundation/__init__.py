"""Foundation: units, errors, seeds, settings files, record tables, the parallel layout and the RoCEv2 wire format."""
