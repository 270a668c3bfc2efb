"""The nodes of a validation: the program that runs on each, and the orders that it is given."""
