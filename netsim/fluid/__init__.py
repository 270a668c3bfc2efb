"""Runs at max-min shares: `engine.skip: fluid`, with intervals from audits packet by packet."""
