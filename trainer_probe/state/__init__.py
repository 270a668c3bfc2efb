"""The state of a training: what its next step depends on, in a form that any layout can take up."""
