"""Event streams: reading, writing, splitting and describing logs of timed interactions."""
