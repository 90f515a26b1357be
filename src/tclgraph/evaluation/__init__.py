"""One ranking protocol for every model: score all targets, record the rank, reveal the event."""
