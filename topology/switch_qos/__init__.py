"""Quality-of-service settings of SONiC switches: what each port and queue has, and what most of a fabric's have."""

from fabrictune.topology.switch_qos.fabric import FabricQos, read_fabric_qos

__all__ = ["FabricQos", "read_fabric_qos"]
