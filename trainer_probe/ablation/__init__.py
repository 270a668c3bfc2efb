"""What each technique of a recipe gains: ablation steps, trained in rounds and compared within each round."""
