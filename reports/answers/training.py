"""Answers about training jobs: their speed, what holds them up, and what would gain most."""

import numpy as np

from fabrictune.foundation.units import format_bytes, format_fraction
from fabrictune.reports.answers.answer import Answer, change, nanoseconds, outcome, points, spread
from fabrictune.reports.blocks import duration, plural
from fabrictune.reports.plans import MEMORY, PARTS, STEP_PARTS
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

TRAINING = select("training", "step", "loss", "is_skipped", "tokens_per_s", "mfu_fraction")
ENDS = ("", "_low", "_high")
ABLATION = select("ablation_steps", "technique", "base", "tokens_per_s", *(f"gain_fraction{end}" for end in ENDS))
STRAGGLERS = select("stragglers", "cause", "ranks", "hosts", "gain_fraction")
DECAY = select("decay_parts", "part", "first_ns", "growth_ns")
EFFECTIVE = select("effective_parts", "part", "duration_ns", "share_fraction")
SURVIVAL = select("survival_parts", "part", *(f"share_fraction{end}" for end in ENDS))
KNOBS = select("survival_knobs", "knob", "now", "then", *(f"gain_fraction{end}" for end in ENDS))
TWIN = select("twin_steps", "step", "measured_ns", "predicted_ns", "half_width_ns", "is_alarm")
KEPT = "effective"


def run_answer(run: Run) -> Answer | None:
    """Return the last loss, and the median speed without the first step."""
    training = run.rows(TRAINING)
    if training is None:
        return None
    counted = slice(1 if len(training["step"]) > 1 else 0, None)
    speed, mfu = (float(np.median(training[name][counted])) for name in ("tokens_per_s", "mfu_fraction"))
    skipped, loss = int(training["is_skipped"].sum()), float(training["loss"][-1])
    shown = [
        f"loss {loss:.4f}" if loss >= 0 else "a loss that is not finite",
        f"{speed:,.0f} tokens/s",
        *([f"MFU {format_fraction(mfu)}"] if mfu >= 0 else []),
    ]
    more = f"; {plural(skipped, 'step')} skipped" if skipped else ""
    return Answer(sentence=f"After {plural(len(training['step']), 'step')}: {', '.join(shown)}{more}.")


def ablation_answer(run: Run) -> Answer | None:
    """Return the technique that gains most."""
    steps = run.rows(ABLATION)
    if steps is None:
        return None
    rows = np.flatnonzero(steps["base"] != "")
    if not len(rows):
        return Answer(sentence=f"{steps['technique'][0]}: {float(steps['tokens_per_s'][0]):,.0f} tokens/s.")
    best = int(rows[np.argmax(steps["gain_fraction"][rows])])
    gain = spread((float(steps[f"gain_fraction{end}"][best]) for end in ENDS), change, level="middle half,")
    return Answer(
        sentence=f"Of {plural(len(rows), 'technique')} most gains: {steps['technique'][best]}, {gain} over "
        f"{steps['base'][best]}."
    )


def plan_answer(run: Run) -> Answer | None:
    """Return the shortest step, what else is in it, and the most memory that a GPU needs."""
    parts, memory = run.rows(STEP_PARTS), run.rows(MEMORY)
    if parts is None:
        return None
    times = dict(zip(parts["part"].tolist(), parts["duration_ps"].tolist(), strict=True))
    *others, (whole, time_ps) = times.items()
    longest = max(others, key=lambda part: part[1], default=None)
    sentences = [
        f"Shortest {whole}: {duration(time_ps)}{f', of it {longest[0]} {duration(longest[1])}' if longest else ''}."
    ]
    if memory is not None:
        most = int(np.sum([memory[f"{part}_bytes"] for part in PARTS], axis=0).max())
        sentences.append(f"A GPU needs up to {format_bytes(most)}.")
    return Answer(sentence=" ".join(sentences))


def stragglers_answer(run: Run) -> Answer | None:
    """Return what makes ranks wait most, and what its removal gains."""
    found = run.table(STRAGGLERS)
    if found is None:
        return None
    if not len(found["cause"]):
        return Answer(sentence="No rank, machine or link was found slower than its peers.")
    gain, where = float(found["gain_fraction"][0]), str(found["ranks"][0])
    at = f"rank {where} on {found['hosts'][0]}" if where else "the whole job"
    gained = f": without it a step is {format_fraction(gain)} shorter" if gain >= 0 else ""
    more = len(found["cause"]) - 1
    return Answer(
        sentence=f"Most is lost to {found['cause'][0]} at {at}{gained}."
        + (f" {plural(more, 'more cause')}." if more else "")
    )


def decay_answer(run: Run) -> Answer | None:
    """Return by how much steps grew, and in which part."""
    parts, figures = run.rows(DECAY), outcome(run)
    if parts is None:
        return None
    most = int(np.argmax(parts["growth_ns"]))
    trend = (
        f"Steps change by {change(figures['growth_fraction'])} over the run. " if "growth_fraction" in figures else ""
    )
    growth = int(parts["growth_ns"][most])
    if growth <= 0:
        return Answer(sentence=f"{trend}No part of the step grows.")
    return Answer(
        sentence=f"{trend}{parts['part'][most]} grows most, by {nanoseconds(growth)} from "
        f"{nanoseconds(int(parts['first_ns'][most]))}."
    )


def twin_answer(run: Run) -> Answer | None:
    """Return how many steps took what was predicted, and from when on they did not."""
    steps = run.rows(TWIN)
    if steps is None:
        return None
    predicted = steps["predicted_ns"] >= 0
    off_ns = np.abs(steps["measured_ns"] - steps["predicted_ns"])
    within, count = int((predicted & (off_ns <= steps["half_width_ns"])).sum()), int(predicted.sum())
    alarms = steps["step"][steps["is_alarm"] == 1]
    alarm = f"alarm from step {alarms[0]:,} on" if len(alarms) else "no alarm"
    if not count:
        return Answer(sentence=f"None of {plural(len(predicted), 'step')} was predicted: the calibration did not end.")
    ratio = float(np.median(steps["measured_ns"][predicted] / np.maximum(steps["predicted_ns"][predicted], 1)))
    return Answer(
        sentence=f"{within:,} of {plural(count, 'predicted step')} are within their interval, {alarm}; the median step "
        f"took {ratio:.2f} times its prediction."
    )


def effective_answer(run: Run) -> Answer | None:
    """Return the share of time in steps that were kept, and what took most of the rest."""
    parts, figures = run.rows(EFFECTIVE), outcome(run)
    if parts is None:
        return None
    shares = dict(zip(parts["part"].tolist(), parts["share_fraction"].tolist(), strict=True))
    (kept, share), *others = shares.items()
    share = figures.get("effective_fraction", share)
    lost = max(others, key=lambda part: part[1], default=(kept, 0.0))
    rest = f" Most of the rest: {lost[0]}, {format_fraction(lost[1])}." if lost[1] > 0 else ""
    return Answer(sentence=f"{format_fraction(share)} of the time went into steps that were kept.{rest}")


def survival_answer(run: Run) -> Answer | None:
    """Return the effective share that is expected, and the knob that gains most."""
    parts, knobs = run.rows(SURVIVAL), run.rows(KNOBS)
    if parts is None:
        return None
    row = next((row for row, part in enumerate(parts["part"].tolist()) if part == KEPT), 0)
    share = spread((float(parts[f"share_fraction{end}"][row]) for end in ENDS), format_fraction, level="90 %")
    sentence = f"{share} of the time is expected to go into steps that are kept."
    if knobs is not None and float(knobs["gain_fraction"][0]) > 0:
        gain = spread((float(knobs[f"gain_fraction{end}"][0]) for end in ENDS), points, level="90 %")
        sentence += f" Most gains: {knobs['knob'][0]}, {knobs['now'][0]} to {knobs['then'][0]}, {gain}."
    return Answer(sentence=sentence)
