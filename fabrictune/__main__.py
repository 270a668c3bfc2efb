"""`python -m fabrictune` is the command `fabrictune`."""

from fabrictune.cli.main import main

main()
