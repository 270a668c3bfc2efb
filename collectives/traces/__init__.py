"""Communication traces of other programs, and our own trace in their formats. One format a file."""
