"""An environment that somebody's file brings along: what is kept, and that nothing else is."""

import string

from hypothesis import given
from hypothesis import strategies as st

from fabrictune.collectives.nccl.redaction import REDACTED, redact


def test_settings_of_the_network_are_kept() -> None:
    """With their values, where these are plain words."""
    plain = ["NCCL_IB_QPS_PER_CONNECTION=4", "UCX_TLS=rc,cuda", "NCCL_SOCKET_IFNAME=^docker0,lo", "GLOO_DEVICE="]
    assert redact(plain) == dict(one.split("=", 1) for one in sorted(plain))


def test_other_variables_are_not_even_named() -> None:
    """Nor is what only looks like one of them."""
    assert redact(["HOME=/home/me", "SLURM_JOB_ACCOUNT=x", "nccl_debug=INFO", "NCCL", "X_NCCL_DEBUG=1", "=", ""]) == {}


def test_values_that_tell_of_more_are_not_kept() -> None:
    """Paths, addresses of either kind, hosts that the file names elsewhere, and whatever sounds like a secret."""
    told = [
        "NCCL_TOPO_FILE=/home/me/topo.xml",
        "NCCL_COMM_ID=node1:29500",
        "UCX_NET_DEVICES=10.1.2.3",
        "NCCL_SOCKET_IFADDR=fe80::1",
        "FI_PROVIDER_TOKEN=abc",
        "NCCL_HOSTLIST=Node-A,Node-B",
        "NCCL_PLUGIN=user@where",
    ]
    assert set(redact(told, hosts=["node-a"]).values()) == {REDACTED}


@given(st.text(string.ascii_letters + "_= /.:", max_size=40), st.text(max_size=40))
def test_nothing_but_allowed_names_comes_out(name: str, value: str) -> None:
    """Whatever goes in."""
    for kept, text in redact([f"{name}={value}", f"NCCL_{name}={value}"]).items():
        assert kept.split("_")[0] in {"NCCL", "RCCL", "TORCH", "UCX", "FI", "GLOO", "MLX5", "IBV", "SHARP", "CUDA"}
        assert text == REDACTED or not set(text) & set("/@ \n")
