"""The axes of parallel training, one file each, over the one door for communication."""
