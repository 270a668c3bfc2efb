"""`fabrictune rdma`: what RDMA adapters do when nothing comes back."""

from fabrictune.cli.framework.groups import CommandGroup
from fabrictune.cli.rdma.explain import explain
from fabrictune.cli.rdma.flap_job import flap_job
from fabrictune.cli.rdma.measure import measure
from fabrictune.cli.rdma.predict import choose, predict, table
from fabrictune.cli.rdma.serve import serve
from fabrictune.cli.rdma.simulate import simulate
from fabrictune.cli.rdma.transfers import bw, lat, matrix

rdma = CommandGroup(name="rdma", help="Say what retransmission timers do, and which link flap a job survives.")
timers = CommandGroup(
    name="timers",
    help="""Predict, choose, simulate and measure when a queue pair gives up.

    \b
    Example:
      fabrictune rdma timers predict --flap 30s
    """,
)
for one in (timers, bw, lat, matrix, serve, flap_job):
    rdma.add_command(one)
for command in (predict, table, choose, simulate, measure, explain):
    timers.add_command(command)
