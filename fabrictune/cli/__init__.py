"""The command line: one file for each group of commands, each of them only reading options and printing results."""
