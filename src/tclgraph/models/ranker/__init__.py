"""The ranker, the default model: score heads over history features, and an optional encoder."""
