"""`fabrictune fleet`: the hosts and switches of a cluster."""
