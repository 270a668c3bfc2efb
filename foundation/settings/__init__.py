"""Settings files: specs become keys, text becomes numbers, mistakes are reported at their lines."""
