"""Flaps of a link of this machine under a real job, and the reaction of TCP."""
