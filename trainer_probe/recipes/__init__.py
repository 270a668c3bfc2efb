"""Recipes: everything a training run is made of, as one file. Those beside this module are known by name."""
