"""Facts: what the text of a node says, one value with its place each, whatever tool and vendor it comes from."""
