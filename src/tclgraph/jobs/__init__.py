"""Running many (log, model, settings, seed) jobs, each of which leaves files."""
