"""Proposals that make flows collide less: source ports, host placement and hash seeds, each by a search that never
gets worse.
"""
