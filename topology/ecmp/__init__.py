"""ECMP collisions: where flows meet, what it costs over many hash seeds, and better placements and ports."""
