"""Readers: each turns files of one format into evidence."""
