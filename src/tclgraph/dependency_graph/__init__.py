"""The paper's temporal dependency interaction graph: which earlier event each event depends on."""
