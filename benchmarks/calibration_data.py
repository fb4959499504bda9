"""Data for which the answer to one question is known: how often does a test reject what is true, or miss what is not?

`calibration_pair` asks x ⫫ y | z1, z2, …; `calibration_domain` asks ℧ ⫫ x | z1, z2, …. With nothing between x and y, or
nothing changing, a test at level α should reject in a share α of the seeds; with something there, as often as possible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.evaluation.simulation import (
    Function,
    NoiseSampler,
    Simulation,
    identity,
    keyed_generator,
    make_read_only,
    name_clients,
    sinc,
)
from fedcdh.protocols import DOMAIN, Query

Mechanism = Callable[[Array], Array]  # from the conditioning variables (rows × variables) to their effect (rows)


def additive(function: Function) -> Mechanism:
    """Σ_i f(z_i)."""
    return lambda z: np.asarray(function(z).sum(axis=1))


MECHANISMS: Mapping[str, Mechanism] = {
    "linear": additive(identity),
    "square": additive(np.square),
    "sin": additive(np.sin),
    "sinc": additive(sinc),
    "tanh": additive(np.tanh),
    "wave": additive(lambda z: np.sin(3 * z)),  # rougher than a few features can follow
    "product": lambda z: np.asarray(z.prod(axis=1)),  # an interaction: no sum of functions of single variables
}


def gaussian(draw: np.random.Generator, rows: int) -> Array:
    """Noise from N(0, 1)."""
    return draw.standard_normal(rows)


def heavy_tailed(draw: np.random.Generator, rows: int) -> Array:
    """Student's t with 5 degrees of freedom, scaled to variance 1: its kurtosis is 9, a Gaussian's 3."""
    return draw.standard_t(5, rows) * np.sqrt(3 / 5)


@dataclass(frozen=True, eq=False)
class Instance:
    """A simulated study and the question it was made for; `independent` is the right answer."""

    study: Simulation
    query: Query
    independent: bool


def calibration_pair(
    mechanism: str = "linear",
    *,
    conditioning: int = 1,
    rows: int = 100,
    clients: int = 10,
    seed: int = 0,
    dependence: float = 0.0,
    coupling: Function = identity,
    distortion: Function = identity,
    unrest: float = 0.0,
    strength_change: float = 0.0,
    noise_change: float = 0.0,
) -> Instance:
    """x = g(m(z) + ε_x), y = g(m(z) + ε_y + dependence · c(ε_x)), all z and ε from N(0, 1), alike at all clients.

    The coupling c acts on the noise of x, so that a `dependence` means the same under every mechanism m. The
    distortion g makes the model post-nonlinear. With `unrest` u the noises of x and y grow with z1, as exp(u z1). With
    the two changes, clients k differ: log strengths of x and of y are drawn from N(0, strength_change²), and the log
    size of the noise, which both have in common, from N(0, noise_change²).
    """
    common = _mechanism(mechanism)
    names = ("x", "y", *_conditioning_names(conditioning))

    def table(client: str) -> Array:
        draw = keyed_generator(seed, "calibration pair", client)
        noise_x, noise_y, *causes = draw.standard_normal((2 + conditioning, rows))
        z = np.reshape(causes, (conditioning, rows)).T
        effect = common(z) if conditioning else np.zeros(rows)
        differ = keyed_generator(seed, "calibration change", client).standard_normal(3)
        of_x, of_y, size = np.exp(differ * [strength_change, strength_change, noise_change])
        noise_x, noise_y = (size * noise * _size(unrest, z) for noise in (noise_x, noise_y))
        x = distortion(of_x * effect + noise_x)
        y = distortion(of_y * effect + noise_y + dependence * coupling(noise_x))
        return make_read_only(np.column_stack([x, y, z]))

    arrows = {(z, effect) for z in names[2:] for effect in ("x", "y")} | ({("x", "y")} if dependence else set())
    study = Simulation({name: table(name) for name in name_clients(clients)}, names, frozenset(arrows), frozenset())
    return Instance(study, Query("x", "y", frozenset(names[2:])), independent=not dependence)


def calibration_domain(
    mechanism: str = "linear",
    *,
    conditioning: int = 1,
    rows: int = 100,
    clients: int = 10,
    seed: int = 0,
    shift: float = 1.0,
    strength_change: float = 0.0,
    noise_change: float = 0.0,
    errors: NoiseSampler = gaussian,
    unrest: float = 0.0,
) -> Instance:
    """x = a_k m(z) + b_k ε, with z_i from N(μ_ki, s_ki²): does the mechanism of x differ between clients k?

    The causes differ by `shift`: μ from N(0, shift²), log s from N(0, (shift/3)²). The mechanism differs by the two
    changes: log a from N(0, strength_change²), log b from N(0, noise_change²); at 0 it is the same everywhere. The
    `errors` ε have variance 1, and grow with z1 as exp(u z1) if there is `unrest` u.
    """
    common = _mechanism(mechanism)
    names = ("x", *_conditioning_names(conditioning))

    def table(client: str) -> Array:
        draw = keyed_generator(seed, "calibration domain", client)
        location, scale = draw.standard_normal((2, conditioning)) * [[shift], [shift / 3]]
        strength, noise = np.exp(draw.standard_normal(2) * [strength_change, noise_change])
        z = location + np.exp(scale) * draw.standard_normal((rows, conditioning))
        effect = common(z) if conditioning else np.zeros(rows)
        unevenly = noise * errors(draw, rows) * _size(unrest, z)
        return make_read_only(np.column_stack([strength * effect + unevenly, z]))

    changed = bool(noise_change or (strength_change and conditioning))
    changing = frozenset(names[1:] if shift else ()) | frozenset(names[:1] if changed else ())
    arrows = frozenset((z, "x") for z in names[1:])
    study = Simulation({name: table(name) for name in name_clients(clients)}, names, arrows, changing)
    return Instance(study, Query(DOMAIN, "x", frozenset(names[1:])), independent=not changed)


def _size(unrest: float, z: Array) -> Array | float:
    """How large the noise is, by the first conditioning variable."""
    return np.asarray(np.exp(unrest * z[:, 0])) if unrest else 1.0


def _conditioning_names(count: int) -> tuple[str, ...]:
    return tuple(f"z{i}" for i in range(1, count + 1))


def _mechanism(name: str) -> Mechanism:
    if name not in MECHANISMS:
        raise ValueError(f"found mechanism {name!r}, expected one of {', '.join(MECHANISMS)}")
    return MECHANISMS[name]
