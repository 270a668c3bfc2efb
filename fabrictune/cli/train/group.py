"""`fabrictune train`: the reference trainer."""

from fabrictune.cli.framework.groups import CommandGroup
from fabrictune.cli.train.ablate import ablate
from fabrictune.cli.train.keys import keys
from fabrictune.cli.train.plan import plan
from fabrictune.cli.train.run import run

train = CommandGroup(name="train", help="Train a language model over three axes of parallelism.")
for command in (run, plan, ablate, keys):
    train.add_command(command)
