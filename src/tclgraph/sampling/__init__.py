"""What a model is shown of the past: sub-graphs of the dependency graph, and negatives."""
