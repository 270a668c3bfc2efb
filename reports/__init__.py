"""Reports: run records in, figures, tables and one self-contained HTML page out. Reads records and nothing else."""
