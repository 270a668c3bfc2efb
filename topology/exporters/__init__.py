"""Exporters: a fabric as schedulers and labs read it, each format a function of a fabric, listed by name."""

from collections.abc import Callable, Mapping

from fabrictune.topology.exporters.containerlab import containerlab_text
from fabrictune.topology.exporters.infragraph import infragraph_text
from fabrictune.topology.exporters.kueue import kueue_text
from fabrictune.topology.exporters.slurm import slurm_conf_text, slurm_yaml_text
from fabrictune.topology.exporters.volcano import volcano_text
from fabrictune.topology.fabric import Fabric

EXPORTERS: Mapping[str, Callable[[Fabric], str]] = {
    "slurm": slurm_conf_text,  # topology.conf
    "slurm-yaml": slurm_yaml_text,  # topology.yaml
    "volcano": volcano_text,
    "kueue": kueue_text,
    "containerlab": containerlab_text,
    "infragraph": infragraph_text,
}
