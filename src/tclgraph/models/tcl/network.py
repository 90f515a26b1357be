"""TCL's network: the two-stream encoder, and Sim or the intensity on top of its vectors.

Shapes: B events or queries, C columns (the true target, then negatives), T targets, D width.
"""

import torch
from torch import Tensor, nn

from tclgraph.arrays import FloatArray
from tclgraph.dependency_graph.interval_scaling import IntervalScale
from tclgraph.encoding.two_stream import TwoStreamEncoder
from tclgraph.layers.projection import Discriminator, PairIntensity
from tclgraph.models.tcl.config import TCLConfig
from tclgraph.objectives.point_process import (
    integrated_intensity,
    log_intensity,
    point_process_loss,
)


class TCLNetwork(nn.Module):
    """All learned parts of TCL."""

    def __init__(self, config: TCLConfig, num_nodes: int, scale: IntervalScale) -> None:
        super().__init__()
        self.config, self.scale = config, scale
        self.encoder = TwoStreamEncoder(config, num_nodes, scale)
        self.discriminator = Discriminator(config.width)
        if config.objective == "point-process":
            self.intensity = PairIntensity()
        self.encoder.initialize()

    def match_all(self, source_BD: Tensor, target_ND: Tensor) -> Tensor:
        """Return Sim before its SoftPlus for all pairs of a source and a target, [B, N]."""
        product_BN = self.discriminator.ranking_key(source_BD) @ target_ND.T
        return product_BN + (source_BD @ self.discriminator.additive)[:, None]

    def intensity_loss(
        self, match_BC: Tensor, since_source: FloatArray, since_target: FloatArray
    ) -> Tensor:
        """Return the point-process loss, given elapsed times, [B, 1] and [B, C]."""
        line_BC, start_BC, span_BC = self._lines(match_BC, since_source, since_target)
        return point_process_loss(
            line_BC[:, 0],
            start_BC,
            self.intensity.slope,
            span_BC,
            self.config.survival_weight,
        )

    def intensity_scores(
        self, match_BT: Tensor, since_source: FloatArray, since_target: FloatArray
    ) -> Tensor:
        """Return the log-density of each pair interacting now, or its log-intensity."""
        line_BT, start_BT, span_BT = self._lines(match_BT, since_source, since_target)
        score_BT = log_intensity(line_BT)
        if self.config.rank_by == "density":
            score_BT = score_BT - integrated_intensity(start_BT, self.intensity.slope, span_BT)
        return score_BT

    def _lines(
        self, match: Tensor, since_source: FloatArray, since_target: FloatArray
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the argument of the intensity's SoftPlus, now and at the span's start; the span.

        Times are in units of the mean interval between events of a node.
        """
        source = self.encoder.numbers(self.scale.scaled(since_source, "linear"))
        target = self.encoder.numbers(self.scale.scaled(since_target, "linear"))
        line = self.intensity.line(match, source, target)
        span = torch.minimum(source, target)
        return line, line - self.intensity.slope * span, span
