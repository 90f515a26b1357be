"""TCL, the paper's model: settings, network, and the model that trains, scores and follows."""
