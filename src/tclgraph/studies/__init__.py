"""Studies: the jobs behind the paper's tables and figures, and how to read their outcomes."""
