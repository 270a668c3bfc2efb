"""The reference trainer: its model, its one door for communication, its ledger, and a launcher of processes.

`comm`, `model` and `step` import torch and run in the processes that `launcher` starts; the rest does without it.
"""
