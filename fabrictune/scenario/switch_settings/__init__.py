"""Switch settings in a scenario: from SONiC's tables to keys, and from a point of a sweep back to changes."""

from fabrictune.scenario.switch_settings.files import SwitchFiles
from fabrictune.scenario.switch_settings.keys import Marking, SwitchKeys, switch_keys

__all__ = ["Marking", "SwitchFiles", "SwitchKeys", "switch_keys"]
