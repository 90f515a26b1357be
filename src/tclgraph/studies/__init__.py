"""The tables and figures of the paper: which jobs each one needs, and how to read them."""
