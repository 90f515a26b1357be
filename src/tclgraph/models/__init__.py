"""The contract that every model keeps, what learned models share, and the models `tcl`, `ranker`."""
