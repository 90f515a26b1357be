"""Results that stand in the repository: repeated runs, their tables and their plots."""
