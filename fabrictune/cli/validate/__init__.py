"""`fabrictune validate`: predictions beside measurements."""
