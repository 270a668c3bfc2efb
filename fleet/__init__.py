"""Fleet: the hosts and switches of a cluster: how they are reached, what they are set to, and what disagrees."""
