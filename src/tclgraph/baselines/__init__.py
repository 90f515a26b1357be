"""Methods to compare with: the floors that any learned model must beat."""
