"""What is read on each node, by one program that changes nothing, and the text that comes back."""
