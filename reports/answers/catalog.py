"""Table of answers: a function for each kind of record. A new kind is a line here."""

from collections.abc import Mapping

from fabrictune.foundation.errors import RecordError
from fabrictune.foundation.records import RunRecord
from fabrictune.reports.answers import (
    calibration,
    collectives,
    networks,
    nodes,
    outcomes,
    rdma,
    simulation,
    sweeps,
    training,
)
from fabrictune.reports.answers.answer import Answer, Answering
from fabrictune.reports.record_view import Run, view_record

NO_RESULTS = Answer(sentence="This record has no results.")
ANSWERS: Mapping[str, Answering] = {
    "coll bench": collectives.measured_answer,
    "coll compare": collectives.compared_answer,
    "coll import": collectives.measured_answer,
    "coll init check": collectives.startup_answer,
    "coll init storm": collectives.storm_answer,
    "coll model": collectives.modelled_answer,
    "diagnose": nodes.hang_answer,
    "ecmp analyze": simulation.collisions_answer,
    "ecmp factorial": outcomes.factorial_answer,
    "ecmp plan": outcomes.plan_answer,
    "ecmp whatif": outcomes.whatif_answer,
    "fleet audit": nodes.audit_answer,
    "rdma bw": rdma.transfers_answer,
    "rdma counters": rdma.counters_answer,
    "rdma flap-job": rdma.flaps_answer,
    "rdma gray-loss": rdma.loss_answer,
    "rdma import": rdma.perftest_answer,
    "rdma lat": rdma.transfers_answer,
    "rdma matrix": rdma.transfers_answer,
    "rdma monitor": rdma.monitor_answer,
    "rdma timers measure": rdma.trials_answer,
    "rdma timers simulate": rdma.timers_answer,
    "sim run": simulation.run_answer,
    "sim sweep": sweeps.sweep_answer,
    "sweep point": simulation.run_answer,
    "topo probe": nodes.probe_answer,
    "train ablate": training.ablation_answer,
    "train decay": training.decay_answer,
    "train diagnose": nodes.diagnosed_answer,
    "train effective": training.effective_answer,
    "train plan": training.plan_answer,
    "train run": training.run_answer,
    "train stragglers": training.stragglers_answer,
    "train survive": training.survival_answer,
    "validate cluster": nodes.cluster_answer,
    "validate fit": calibration.fit_answer,
    "validate local": simulation.comparison_answer,
    "validate predict": networks.prediction_answer,
    "validate testbed train": training.twin_answer,
    "validate whatif": networks.network_answer,
}


def sentence_of(record: RunRecord) -> str | None:
    """Return the sentence below the title of a record's page, for a terminal and for machines; None as `answer_of`."""
    answer = answer_of(view_record(record, record.kind))
    return answer.sentence if answer else None


def answer_of(run: Run) -> Answer | None:
    """Return a run's answer, of tables without a column that it needs that there is none; None for an unknown kind."""
    answering = ANSWERS.get(run.record.kind)
    try:
        return (answering(run) or NO_RESULTS) if answering else None
    except RecordError as error:
        lacking = error.mistakes[0]
        return Answer(sentence=f"No answer from this record: {lacking.where}: {lacking.found}.")
