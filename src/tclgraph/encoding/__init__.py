"""Encoded events and node states, shared by TCL, TDIG-MPNN and the ranker's encoder."""
