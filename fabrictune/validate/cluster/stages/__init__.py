"""The stages of a cluster's validation, each a function of the site that returns its result."""
