"""Differential privacy: summaries with calibrated integer noise.

- `mechanism`: noise in summaries, of one client or shared by several;
- `discrete_gaussian`: the exact sampler.

The privacy parameters are part of the plan: `fedcdh.summaries.dp_parameters`.
"""

from fedcdh.privacy.differential.discrete_gaussian import sample_discrete_gaussian
from fedcdh.privacy.differential.mechanism import add_noise, add_noise_share, clip_noisy_rows, noise_deviations

__all__ = ["add_noise", "add_noise_share", "clip_noisy_rows", "noise_deviations", "sample_discrete_gaussian"]
