"""Communication traces that others wrote, and the trace of ours in their formats. One format a file."""
