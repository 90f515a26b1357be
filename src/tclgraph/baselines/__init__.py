"""The nine baselines of the paper's Table 2, one file each, under the same contract."""
