"""A sample of mutants: random, the same for the same seed, and fair to small areas."""

from collections.abc import Mapping, Sequence

from tests.mutants.mutation import Mutation


def sample(mutations: Mapping[str, Sequence[Mutation]], size: int, seed: int) -> dict[str, list[Mutation]]:
    """Return as many of each area; what small areas lack comes from the others."""
    left, chosen = size, {}
    for place, name in enumerate(sorted(mutations, key=lambda name: len(mutations[name]))):
        ranked = sorted(mutations[name], key=lambda mutation: mutation.rank(seed))
        chosen[name] = ranked[: left // (len(mutations) - place)]
        left -= len(chosen[name])
    return {name: chosen[name] for name in mutations}
