"""Ranks as processes of this machine: started, watched, and asked for their stacks when one does not end."""
