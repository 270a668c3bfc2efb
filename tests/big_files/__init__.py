"""Files of 50 MB for every reader: each is read within bounds of memory and time, or refused by name."""
