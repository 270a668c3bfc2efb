"""Inputs of an engine: network, traffic, law and configuration as flat arrays, checked once on the way."""
