"""The tables of run records: one schema that writers, readers, files and documentation share."""
