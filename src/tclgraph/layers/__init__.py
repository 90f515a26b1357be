"""Parts that models are made of. They know tensors and nothing of events."""
