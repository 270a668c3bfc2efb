"""The reference trainer: language models over three axes of parallelism, with every communication recorded in a ledger.

`model` is the network as functions over weights, `parallel` divides it over ranks, `driver` runs a recipe on the ranks
that `launcher` starts here or that a cluster's launcher started; `planning` predicts a step without running it. Modules
that compute import torch; specs, schedules, volumes and the ledger do without it.
"""
