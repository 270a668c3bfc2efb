"""Predicted steps against published ones."""
