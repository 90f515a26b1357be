"""History features: what the events before a query say about its source and its candidates."""
