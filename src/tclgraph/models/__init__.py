"""What a model is (the contract) and which models there are (the names)."""
