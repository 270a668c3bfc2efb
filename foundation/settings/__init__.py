"""Settings read from files: specs become keys, text becomes numbers, mistakes are told at their lines."""
