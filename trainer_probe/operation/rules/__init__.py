"""Rules of a job: what is wrong, from all nodes at one moment, and what to do about it, from the job's history."""

from fabrictune.trainer_probe.operation.rules.decision import decide
from fabrictune.trainer_probe.operation.rules.diagnosis import diagnose
from fabrictune.trainer_probe.operation.rules.history import decision_values, fault_values
from fabrictune.trainer_probe.operation.rules.replay import conclude_replay
from fabrictune.trainer_probe.operation.rules.settings import RuleSettings

__all__ = ["RuleSettings", "conclude_replay", "decide", "decision_values", "diagnose", "fault_values"]
