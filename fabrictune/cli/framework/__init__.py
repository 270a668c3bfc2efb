"""Parts shared by all commands: groups, options, output, progress, errors and exit codes."""
