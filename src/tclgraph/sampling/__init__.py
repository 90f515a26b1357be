"""What a model sees of the past: sub-graphs, neighbors, walks, snapshots, and negatives."""
