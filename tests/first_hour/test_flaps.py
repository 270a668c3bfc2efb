"""A link flap and a slow port: does the job survive, with which timers, and what does a run show?"""

from tests.first_hour.session import Session

FLAP = """\
name: flap
question: Does the job survive a link flap beside a slow port?
fabric: {builder: clos, num_hosts: 16, hosts_per_tor_set: 8, nics_per_host: 1, tiers: 2}
traffic: {workload: all_reduce, layout: {dp: 16}, message: 64 MB}
law: dcqcn_firmware
adapter: connectx-6
engine: {transport: {timeout_exponent: 20, retries: 7}}
faults:
  - {fault: flap, link: "host0:nic0", at: 100 us, down: 5 s}
  - {fault: slow_port, port: "host1:nic0", at: 0 ns, rate: 100 Gbps}
expect:
  - {metric: makespan, at_most: 110 s}
"""


def test_a_flap_is_judged_by_the_model_and_by_the_engine(session: Session) -> None:
    """One line says what survives; a run of 5 s goes on, one of 70 s ends, and the timers that are chosen mend it.

    A ConnectX-6 with T 20 and R 7 gives up after 59.76 s; T 21 and R 7 survive 102.7 s.
    """
    session.write("flap.yaml", FLAP)
    line = session.command("fabrictune rdma timers predict --survive 10s --survive 60s", exit_code=1)
    assert line.startswith(
        "timeout 20, 7 retries: survives 10 s on all profiles; 60 s on ibta-slowest, soft-roce; not on "
    )
    assert "connectx-6 (51.17 s)" in line
    assert "unknown: connectx-7, bluefield-3" in line
    chosen = session.command("fabrictune rdma timers choose --survive 70s --detect-within 150s --profile connectx-6")
    assert chosen.startswith("by the timers of connectx-6 (ConnectX-6 VPI, firmware 20.43.4100):\n")
    assert "NCCL_IB_TIMEOUT=21 NCCL_IB_RETRY_CNT=7" in chosen
    survived = session.command("fabrictune sim run flap.yaml --quiet")
    assert "met: makespan: 8.235 s; expected at most 110 s" in survived
    ended = session.command('fabrictune sim run flap.yaml --set "faults[0].down=70 s" --quiet', exit_code=1)
    assert "2 QPs failed with retry-exceeded (IBV_WC_RETRY_EXC_ERR) 59.76 s after flap" in ended
    mended = session.command(
        'fabrictune sim run flap.yaml --set "faults[0].down=70 s; engine.transport.timeout_exponent=21" --quiet'
    )
    assert "retry-exceeded" not in mended
    assert "never completed" not in mended
