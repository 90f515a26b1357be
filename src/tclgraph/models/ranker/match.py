"""The ranker's optional encoder, and the match score of a source and a target.

Shapes: B queries, N vectors of targets, D width.
"""

import torch
from torch import Tensor, nn

from tclgraph.dependency_graph.interval_scaling import IntervalScale
from tclgraph.encoding.two_stream import TwoStreamEncoder
from tclgraph.layers.projection import Discriminator
from tclgraph.models.ranker.config import EncoderConfig

_MEAN_RATE = 0.01


class MatchEncoder(nn.Module):
    """TCL's encoder with a match score that can be centered."""

    mean_source: Tensor

    def __init__(self, config: EncoderConfig, num_nodes: int, scale: IntervalScale) -> None:
        super().__init__()
        self.config = config
        self.encoder = TwoStreamEncoder(config, num_nodes, scale)
        self.discriminator = Discriminator(config.width)
        self.encoder.initialize()
        if config.centered:
            # Moving average of the mean source vector over about the last hundred batches.
            self.register_buffer("mean_source", torch.zeros(config.width))

    def ranking_key(self, source_BD: Tensor, *, in_training: bool = False) -> Tensor:
        """Return the vectors whose product with targets' vectors is the match score.

        Centered, only the difference between a source and the mean source counts. In training the
        mean is that of the given sources, and it updates the moving average used in ranking.
        """
        if not self.config.centered:
            return self.discriminator.ranking_key(source_BD)
        mean_D = self.mean_source
        if in_training:
            mean_D = source_BD.mean(dim=0)
            self.mean_source.lerp_(mean_D.detach(), _MEAN_RATE)
        return self.discriminator.multiplicative * (source_BD - mean_D)
