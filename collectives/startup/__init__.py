"""How the ranks of a job find one another: ordered groups, made by their members only, over a store of keys."""
