"""The demo: a fabric's collisions, three laws, and a training beside its twin, on one page."""
