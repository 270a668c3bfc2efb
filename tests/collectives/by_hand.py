"""Schedules as lists that a person can check."""

from fabrictune.collectives.schedule import Schedule

Message = tuple[int, int, int, list[int]]


def messages(schedule: Schedule) -> list[Message]:
    """Return step, sender, receiver and chunks of every message."""
    ends = zip(schedule.step_M.tolist(), schedule.sender_M.tolist(), schedule.receiver_M.tolist(), strict=True)
    return [(*step_and_ends, schedule.chunks_of(message).tolist()) for message, step_and_ends in enumerate(ends)]


def backwards(gathered: list[Message], last_step: int) -> list[Message]:
    """Return the messages of an all-gather from the last to the first, as a reduce-scatter sends them."""
    return sorted((last_step - step, receiver, sender, chunks) for step, sender, receiver, chunks in gathered)


def later(half: list[Message], steps: int) -> list[Message]:
    """Return messages so many steps later."""
    return [(steps + step, sender, receiver, chunks) for step, sender, receiver, chunks in half]
