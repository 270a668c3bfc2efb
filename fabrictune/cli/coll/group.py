"""`fabrictune coll`: collectives, from the start of a job on."""

from fabrictune.cli.coll.bench import bench
from fabrictune.cli.coll.compare import compare
from fabrictune.cli.coll.explain import explain
from fabrictune.cli.coll.importing import import_measurements
from fabrictune.cli.coll.init import init
from fabrictune.cli.coll.model import model
from fabrictune.cli.coll.ras import ras
from fabrictune.cli.coll.topology import topology
from fabrictune.cli.framework.groups import CommandGroup

coll = CommandGroup(name="coll", help="Start the ranks of a job, and measure and model collectives.")
for command in (init, bench, import_measurements, model, compare, explain, ras, topology):
    coll.add_command(command)
