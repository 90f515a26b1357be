"""The nine baselines of the paper's Table 2 and later models, one file each, under one contract."""
