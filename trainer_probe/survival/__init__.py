"""Effective training time: of a job that ran, by its journal, and of one that is planned, by failure rates."""
