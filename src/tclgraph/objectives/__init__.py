"""What training minimises: pure functions of tensors."""
