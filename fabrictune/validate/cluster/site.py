"""What every stage is given: the nodes, their NICs, the planned fabric, settings, and results of earlier stages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fabrictune.fleet.audit.rule_files import AuditRule
from fabrictune.foundation.finding_rules.settings import RuleSettings
from fabrictune.foundation.progress import Progress
from fabrictune.topology.fabric import Fabric
from fabrictune.validate.cluster.crew import Crew
from fabrictune.validate.cluster.nics import NicList
from fabrictune.validate.cluster.results import StageResult


@dataclass(frozen=True, kw_only=True)
class ClusterSettings:
    """How much is measured."""

    flow_s: float = 1.0
    num_rounds: int = 0  # of concurrent pairs; 0: all
    num_paths: int = 4  # that each host's flow across is tried on
    backend: str = "auto"  # gloo, nccl, or nccl where every node has a GPU
    ranks_per_node: int = 0  # 0: one over gloo, one a GPU over nccl
    max_bytes: int = 2**22  # of collectives
    stage_s: float = 600.0  # for one order of a stage


@dataclass(frozen=True, kw_only=True)
class Site:
    """The surroundings of a stage."""

    crew: Crew
    machines: Mapping[str, Mapping[str, Any]]  # of the nodes that answered
    nics: NicList
    fabric: Fabric | None
    settings: ClusterSettings
    rules: RuleSettings
    audit_rules: Sequence[AuditRule]
    folder: Path  # of the validation
    results: Mapping[str, StageResult] = field(default_factory=dict)
    progress: Progress = lambda fraction, note="", /: None
