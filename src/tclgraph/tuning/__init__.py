"""Search of settings on the validation part."""
