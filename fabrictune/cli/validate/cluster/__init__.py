"""`fabrictune validate cluster`: the command, and what it prints."""
