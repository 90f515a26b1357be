"""Training of models: the loop, its settings, checkpoints, and the folder that a run leaves."""
