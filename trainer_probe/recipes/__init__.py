"""Recipes: all settings of a training run in one file. Those in this folder are available by name."""
