"""`fabrictune coll`: collectives, from the start of a job on."""

from fabrictune.cli.coll_bench import bench
from fabrictune.cli.coll_compare import compare
from fabrictune.cli.coll_import import import_measurements
from fabrictune.cli.coll_init import init
from fabrictune.cli.coll_model import model
from fabrictune.cli.groups import Group

coll = Group(name="coll", help="Start the ranks of a job, and measure what collectives take.")
for command in (init, bench, import_measurements, model, compare):
    coll.add_command(command)
