"""Training objectives: pure functions of tensors."""
