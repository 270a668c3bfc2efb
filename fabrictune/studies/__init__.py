"""Studies of a scenario: one simulation, its ECMP collisions, its variants, and proposals for fewer collisions."""
