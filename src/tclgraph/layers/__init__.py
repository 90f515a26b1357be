"""Layers that models are built from. They work on tensors and know nothing of events."""
