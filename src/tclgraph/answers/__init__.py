"""Answers in the keys of the log: recommendations, similar nodes, vectors, for every model."""
