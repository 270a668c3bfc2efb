"""From network, traffic, law and configuration to the flat arrays an engine reads, checked once on the way."""
