"""Calibration: parameters of a hardware profile from measured times, and how far these determine them."""
