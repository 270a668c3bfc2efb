"""`fabrictune train`: the reference trainer."""

from fabrictune.cli.groups import Group
from fabrictune.cli.train_ablate import ablate
from fabrictune.cli.train_keys import keys
from fabrictune.cli.train_plan import plan
from fabrictune.cli.train_run import run

train = Group(name="train", help="Train a GPT over three axes of parallelism.")
for command in (run, plan, ablate, keys):
    train.add_command(command)
