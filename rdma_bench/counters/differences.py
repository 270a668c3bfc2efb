"""What rose between two snapshots: differences by device and counter, wraps and resets told apart.

A counter that fell has wrapped or was reset. It wrapped if it is known to have 32 bits, rose by less than half of their
range modulo 2^32, and no other counter of the same device was reset; else its difference is unknown. A counter that
stays at its largest value has risen by at least the difference.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from fabrictune.rdma_bench.counters.catalog import CounterClass
from fabrictune.rdma_bench.counters.snapshots import Counter, Snapshot

MAX_NAMED = 5


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How far one counter rose; `amount` is in the unit of its meaning, None where it is unknown."""

    before: Counter
    after: Counter
    amount: int | None
    has_wrapped: bool = False
    is_saturated: bool = False

    @property
    def counter_class(self) -> CounterClass:
        """The class of the counter."""
        return self.after.meaning.counter_class


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Differences of the counters in both snapshots, settings that changed, and notes."""

    differences: tuple[Difference, ...]
    reset_devices: tuple[str, ...]
    notes: tuple[str, ...]


def compare_snapshots(before: Snapshot, after: Snapshot) -> Comparison:
    """Return what rose from one snapshot to the other."""
    common = [key for key in after.counters if key in before.counters]
    pairs = [(before.counters[key], after.counters[key]) for key in common]
    resets = {new.device for old, new in pairs if new.value < old.value and not _may_have_wrapped(old, new)}
    notes = [*before.notes, *(note for note in after.notes if note not in before.notes)]
    notes += _not_common(before, after) + list(_changed_settings(before, after))
    return Comparison(
        differences=tuple(_difference(old, new, is_reset=new.device in resets) for old, new in pairs),
        reset_devices=tuple(dict.fromkeys(device for device, _ in common if device in resets)),
        notes=tuple(notes),
    )


def _difference(old: Counter, new: Counter, *, is_reset: bool) -> Difference:
    factor, bits = new.meaning.factor, new.meaning.bits
    amount: int | None = (new.value - old.value) * factor
    has_wrapped = new.value < old.value and not is_reset and _may_have_wrapped(old, new)
    if has_wrapped:
        amount = (new.value - old.value) % int(2**bits) * factor
    elif new.value < old.value or is_reset:
        amount = None
    is_saturated = new.meaning.saturates and new.value == 2**bits - 1
    return Difference(before=old, after=new, amount=amount, has_wrapped=has_wrapped, is_saturated=is_saturated)


def _may_have_wrapped(old: Counter, new: Counter) -> bool:
    """Return whether a counter of known bits is nearer to its old value round the end than back."""
    bits = new.meaning.bits
    if new.meaning.saturates or bits > 32 or old.value >= 2**bits:
        return False
    size: int = 2**bits
    return 2 * ((new.value - old.value) % size) < size


def _not_common(before: Snapshot, after: Snapshot) -> list[str]:
    """Return a note of the counters that only one of the snapshots has."""
    notes = []
    for one, other, name in ((before, after, "first"), (after, before, "second")):
        alone = [key for key in one.counters if key not in other.counters]
        if alone:
            shown = ", ".join("/".join(filter(None, key)) for key in alone[:MAX_NAMED])
            more = ", ..." if len(alone) > MAX_NAMED else ""
            notes.append(f"counters in the {name} snapshot only, not compared: {len(alone)} ({shown}{more})")
    return notes


def _changed_settings(before: Snapshot, after: Snapshot) -> Iterator[str]:
    for (device, name), text in after.settings.items():
        earlier = before.settings.get((device, name), text)
        if earlier != text:
            place = f"{device}: " if device else ""
            yield f"{place}{name} changed between the snapshots: {earlier} -> {text}"
