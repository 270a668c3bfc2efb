"""Congestion-control laws in pure Python, one file each, and the interface through which an engine calls them."""
