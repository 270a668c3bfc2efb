"""Tests of one node, each in a process of its own."""
