"""Predictions beside measurements: what really ran, run again in the simulator."""
