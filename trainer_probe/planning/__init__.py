"""What a training job will ask of a cluster, without the cluster: its requests, bytes, memory and time."""
