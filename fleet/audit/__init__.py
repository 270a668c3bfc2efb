"""What disagrees in a fleet: rules as data, their findings, and a set of changes that nobody applies."""
