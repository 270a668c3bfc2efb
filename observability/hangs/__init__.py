"""Hangs: which rank of a job the others wait for, from whatever the job left behind."""
