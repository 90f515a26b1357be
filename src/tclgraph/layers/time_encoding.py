"""Time encoding: an interval as a vector of cosines with learned frequencies.

Shapes: T width of a code, P = 2T: the cosines, then the sines.
"""

import torch
from torch import Tensor, nn

# Initial frequencies, in radians per unit of time.
_FASTEST, _SLOWEST = 1e3, 1e-3


class TimeEncoding(nn.Module):
    """Encode an interval Δ as cos(ω Δ + b), with ω and b learned (Φ in TGAT's paper).

    Paper: Δ in seconds and ω from 1 down to 1e-9. Here: Δ in units that the model measures, and ω
    from 1e3 down to 1e-3. Because: not every log counts in seconds; and an interval as long as a
    log can be ten million radians, which leaves float32 no digits for the fraction of a turn.
    Paper: ω is a parameter. Here: its logarithm is. Because: Adam moves a weight by about the
    learning rate, which is far more than the slow frequencies.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        frequency_T = _FASTEST * (_SLOWEST / _FASTEST) ** torch.linspace(0.0, 1.0, width)
        self.log_frequency = nn.Parameter(frequency_T.log())
        self.phase = nn.Parameter(torch.zeros(width))

    @property
    def frequency(self) -> Tensor:
        """Frequencies ω, [T]."""
        return self.log_frequency.exp()

    @property
    def of_now(self) -> Tensor:
        """Code of an interval of 0, [T]."""
        return self.phase.cos()

    def forward(self, interval: Tensor) -> Tensor:
        """Return the codes of intervals along a new last axis."""
        return (interval[..., None] * self.frequency + self.phase).cos()

    @torch.no_grad()
    def turns(self, time: Tensor, *, at_end: bool) -> Tensor:
        """Return the cosines and sines of the start or end times of intervals, [..., P].

        cos(ω (t - s) + b) = cos(ω t + b) cos(ω s) + sin(ω t + b) sin(ω s), so a sum of codes over
        many start times s needs no cosine of each difference. Times can be far larger than
        intervals, so they are float64, and on the CPU because not every device supports float64.

        >>> encoding = TimeEncoding(4)
        >>> begin = encoding.turns(torch.tensor([5.0], dtype=torch.float64), at_end=False)
        >>> end = encoding.turns(torch.tensor([7.0], dtype=torch.float64), at_end=True)
        >>> code = sum((begin * end).chunk(2, dim=1))
        >>> torch.allclose(code, encoding(torch.tensor([2.0])), atol=1e-4)
        True
        """
        angle = time[..., None] * self.frequency.cpu().double()
        if at_end:
            angle += self.phase.cpu().double()
        return torch.cat([angle.cos(), angle.sin()], dim=-1).to(self.phase)
