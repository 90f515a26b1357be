"""Heuristic baselines: simple rules that every learned model is compared with."""
