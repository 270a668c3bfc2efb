"""The roof: scenarios, the command line, conformance, and predictions beside measurements."""
