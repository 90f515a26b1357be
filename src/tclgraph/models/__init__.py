"""The contract of every model, what learned models share, and the models TCL and ranker."""
