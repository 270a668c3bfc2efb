"""`fabrictune fleet`: the hosts and switches of a cluster, read and compared; nothing on them is ever changed."""

from fabrictune.cli.fleet.audit import audit, rules
from fabrictune.cli.fleet.collect import collect
from fabrictune.cli.fleet.counters import counters
from fabrictune.cli.fleet.export import export_scenario
from fabrictune.cli.fleet.timeouts import timeouts
from fabrictune.cli.framework.groups import CommandGroup

fleet = CommandGroup(name="fleet", help="Read the hosts and switches of a cluster, and find what disagrees.")
for command in (collect, audit, rules, counters, timeouts, export_scenario):
    fleet.add_command(command)
