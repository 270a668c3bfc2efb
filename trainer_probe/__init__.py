"""The reference trainer: a GPT over three axes of parallelism, one door for communication, its ledger, and a launcher.

`model` has the network as functions over weights, `parallel` divides it over ranks. What computes imports torch and
runs in the processes that `launcher` starts; specs, counts, schedules, volumes and the ledger do without it.
"""
