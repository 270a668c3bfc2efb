"""Damaged inputs for all commands that read: each ends in a result or in an error for the user."""
