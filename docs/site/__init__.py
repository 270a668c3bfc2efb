"""The documentation site: the documents as they are, and pages made from the code and from results."""
