"""Groups of ranks that are numbered by parallel dimension: tensor first, then expert, data and pipeline.

A stage is the ranks of one place in the pipeline. Within it, ranks next to one another are a tensor group, and those
of one place in their tensor group are a data-parallel group, of which blocks of `ep` are expert groups.

Source: Megatron-LM, core/parallel_state.py, order tp-cp-ep-dp-pp; ASTRA-sim numbers nodes by network dimension.
"""

KINDS = ("tp", "dp", "ep", "dp_ep", "tp_ep", "pp", "embedding", "all")


class RankGroups:
    """The groups of ranks; one object for each group."""

    def __init__(self, *, num_ranks: int, tp: int = 1, ep: int = 1, pp: int = 1) -> None:
        self.num_ranks, self.tp, self.ep, self.pp = num_ranks, tp, ep, pp
        self.stage_ranks = num_ranks // pp
        self.block = tp * ep  # ranks that shortening data parallelism leaves whole
        self._known: dict[tuple[str, int], tuple[int, ...]] = {}

    def of(self, rank: int, kind: str) -> tuple[int, ...]:
        """Return the group of a rank; `kind` is one of KINDS."""
        ranks = self._range(rank, kind)
        key = kind, ranks.start
        if key not in self._known:
            self._known[key] = tuple(ranks)
        return self._known[key]

    def has_stage(self, stage: int) -> bool:
        """Return whether the pipeline has such a stage."""
        return 0 <= stage < self.pp

    def _range(self, rank: int, kind: str) -> range:
        stage, place = divmod(rank, self.stage_ranks)
        if kind == "all":
            return range(self.num_ranks)
        if kind == "pp":
            return range(place, self.num_ranks, self.stage_ranks)
        if kind == "embedding":  # the first and the last stage share the embedding's weights
            is_alone = self.pp == 1 or stage not in (0, self.pp - 1)
            return (
                range(rank, rank + 1) if is_alone else range(place, self.num_ranks, self.num_ranks - self.stage_ranks)
            )
        start, end, stride = {
            "tp": (place - place % self.tp, place - place % self.tp + self.tp, 1),
            "dp": (place % self.tp, self.stage_ranks, self.tp),
            "ep": (self._block_start(place) + place % self.tp, self._block_start(place) + self.block, self.tp),
            "dp_ep": (place % self.block, self.stage_ranks, self.block),
            "tp_ep": (self._block_start(place), self._block_start(place) + self.block, 1),
        }[kind]
        first = stage * self.stage_ranks
        return range(first + start, first + end, stride)

    def _block_start(self, place: int) -> int:
        return place - place % self.block
