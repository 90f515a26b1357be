"""Which earlier event each event leans on: the paper's temporal dependency interaction graph."""
