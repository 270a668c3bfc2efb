"""`fabrictune rdma`: what RDMA adapters do when nothing comes back."""

from fabrictune.cli.groups import Group
from fabrictune.cli.rdma_explain import explain
from fabrictune.cli.rdma_flap_job import flap_job
from fabrictune.cli.rdma_measure import measure
from fabrictune.cli.rdma_predict import choose, predict, table
from fabrictune.cli.rdma_serve import serve
from fabrictune.cli.rdma_simulate import simulate
from fabrictune.cli.rdma_transfers import bw, lat, matrix

rdma = Group(name="rdma", help="Say what retransmission timers do, and which link flap a job survives.")
timers = Group(
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
