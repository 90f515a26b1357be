"""The ranking protocol: score all targets, record the rank of the true one, reveal the event."""
