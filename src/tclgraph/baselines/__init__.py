"""The nine models that the paper compares with, one file each, under the same contract."""
