"""The manual: every command as a page, for `man` and for docs/reference."""
