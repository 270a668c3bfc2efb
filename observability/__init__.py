"""Observability: what a job's spans, evidence and counters say: stragglers, hangs, timelines, decay, gray loss."""
