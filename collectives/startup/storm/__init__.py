"""Storms: thousands of emulated ranks that start at once against a real store server."""
