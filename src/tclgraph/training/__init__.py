"""How models learn: one loop, its settings, and the folder that a run leaves."""
