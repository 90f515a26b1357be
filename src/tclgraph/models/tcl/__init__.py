"""TCL, the paper's model and nothing else."""
