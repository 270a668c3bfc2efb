"""What each technique of a recipe gains: rungs of a ladder, trained in turn and compared round by round."""
