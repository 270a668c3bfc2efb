"""Rotary positions: pairs of features of queries and keys are turned by an angle that grows with the token's place.

Shapes: S sequence, B batch, H heads, E features of a head; feature i is paired with feature i + E/2.

Source: Su et al., "RoFormer: enhanced transformer with rotary position embedding", 2021, equation 15.
"""

import torch

BASE = 10_000.0  # of the wavelengths, as in the source


def rotate(x_SBHE: torch.Tensor) -> torch.Tensor:
    """Return the features, each pair i turned by place * BASE ** (-2 i / E)."""
    num_places, half = x_SBHE.shape[0], x_SBHE.shape[-1] // 2
    exact = {"device": x_SBHE.device, "dtype": torch.float64}
    rate_E = BASE ** (-torch.arange(half, **exact) / half)  # type: ignore[call-overload]  # as keyword arguments
    angle_S11E = (torch.arange(num_places, **exact)[:, None] * rate_E)[:, None, None]  # type: ignore[call-overload]
    cosine, sine = angle_S11E.cos().to(x_SBHE.dtype), angle_S11E.sin().to(x_SBHE.dtype)
    first, second = x_SBHE[..., :half], x_SBHE[..., half:]
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)
