"""Jobs: a log, a model, settings and a seed each, run in processes and stored as files."""
