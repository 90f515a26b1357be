"""How long ago, as a vector: cosines of learned frequencies.

Shapes: T width of a code, P = 2T: the cosines, then the sines.
"""

import torch
from torch import Tensor, nn

# Frequencies at the start, in radians per unit of time.
_FASTEST, _SLOWEST = 1e3, 1e-3


class TimeEncoding(nn.Module):
    """cos(ω Δ + b), with ω and b learned (Φ in TGAT's paper).

    Paper: Δ in seconds and ω from 1 down to 1e-9. Here: Δ in units that the model measures, and ω
    from 1e3 down to 1e-3. Because: not every log counts in seconds; and in seconds an interval as
    long as a log can be ten million radians, of which float32 keeps no fraction.
    Paper: ω is learned as it is. Here: its logarithm. Because: Adam moves a weight by about the
    learning rate, so that the slow frequencies would be gone after the first step.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        frequency_T = _FASTEST * (_SLOWEST / _FASTEST) ** torch.linspace(0.0, 1.0, width)
        self.log_frequency = nn.Parameter(frequency_T.log())
        self.phase = nn.Parameter(torch.zeros(width))

    @property
    def frequency(self) -> Tensor:
        return self.log_frequency.exp()

    @property
    def of_now(self) -> Tensor:
        """The code of an interval of 0, [T]."""
        return self.phase.cos()

    def forward(self, interval: Tensor) -> Tensor:
        """Codes along a new last axis."""
        return (interval[..., None] * self.frequency + self.phase).cos()

    @torch.no_grad()
    def turns(self, time: Tensor, *, at_end: bool) -> Tensor:
        """What codes of many intervals are made of, for when these begin or end, [..., P].

        cos(ω (t - s) + b) = cos(ω t + b) cos(ω s) + sin(ω t + b) sin(ω s), so a sum over s of such
        codes needs no cosine of each difference. Unlike intervals, times can be long: they are
        float64, and on the host, as not every device has that.

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
