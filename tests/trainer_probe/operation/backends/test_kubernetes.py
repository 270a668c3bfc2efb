"""Nodes as pods: the official client against a server of the API's own paths."""

import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fabrictune.foundation.errors import InputError, UnavailableError
from fabrictune.foundation.time_limits import scaled
from fabrictune.trainer_probe.operation.backends.kubernetes import (
    KubernetesBackend,
    KubernetesSettings,
    connect_api,
    make_manifest,
)
from tests.trainer_probe.operation.backends.api_server import Cluster, api_server

pytest.importorskip("kubernetes")

TEMPLATE: dict[str, Any] = {
    "metadata": {"name": "ignored", "labels": {"team": "a"}},
    "spec": {
        "containers": [
            {
                "name": "executor",
                "image": "fabrictune:1",
                "resources": {"requests": {"cpu": "8", "nvidia.com/gpu": "8"}},
                "env": [{"name": "LEVEL", "value": "1"}, {"name": "KEY", "value": "replaced"}],
            }
        ]
    },
}
SETTINGS = KubernetesSettings(template=TEMPLATE, secrets={"KEY": ("job-key", "key")}, poll_s=0.02)
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.fixture
def server() -> Iterator[tuple[Cluster, Any]]:
    """Return a cluster, and the official client's view of it."""
    from kubernetes import client

    with api_server() as (cluster, address):
        configuration = client.Configuration()
        configuration.host = address
        with client.ApiClient(configuration) as connection:
            yield cluster, client.CoreV1Api(connection)


def test_manifest_has_what_a_node_needs() -> None:
    """Labels, one host each, no restart, and secrets by reference; the template stays as it is."""
    manifest = make_manifest("j1", "a", ["run", "$HOME"], {"LEVEL": "2"}, SETTINGS)
    assert manifest["metadata"] == {
        "generateName": "fabrictune-j1-a-",
        "labels": {"team": "a", "fabrictune/job": "j1", "fabrictune/node": "a"},
    }
    spec = manifest["spec"]
    assert (spec["restartPolicy"], spec["terminationGracePeriodSeconds"]) == ("Never", 1)
    [apart] = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["labelSelector"]["matchLabels"] == {"fabrictune/job": "j1"}
    [container] = spec["containers"]
    assert (container["command"], container["args"]) == (["run", "$HOME"], [])
    assert container["env"] == [
        {"name": "LEVEL", "value": "2"},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "job-key", "key": "key"}}},
    ]
    assert "affinity" not in TEMPLATE["spec"]


def test_mistakes_of_a_template_come_together() -> None:
    """A name, an image and requests."""
    template = {"spec": {"containers": [{"name": "executor"}]}}
    with pytest.raises(InputError) as raised:
        KubernetesBackend("J_1", KubernetesSettings(template=template), api=object())
    text = str(raised.value)
    assert "job: 'J_1'\n  allowed: a-z, 0-9 and - between, at most 30" in text
    assert "template: spec.containers[0].image: missing" in text
    assert "template: spec.containers[0].resources.requests: missing" in text


def test_node_is_started_found_and_ended(server: tuple[Cluster, Any]) -> None:
    """A later driver finds the node; its end returns when the kubelet has ended it."""
    cluster, api = server
    backend = KubernetesBackend("j1", SETTINGS, api)
    backend.start("a", SLEEP, {})
    later = KubernetesBackend("j1", SETTINGS, api)
    assert list(later.living()) == ["a"]
    assert KubernetesBackend("j2", SETTINGS, api).living() == []
    assert later.ended() == {}
    later.end("a")
    assert [process.poll() for process in cluster.processes.values()] == [-9]
    assert cluster.graces_s == [1]
    assert later.living() == []
    assert later.ended() == {"a": -1}


@pytest.mark.parametrize(("code", "reported"), [("raise SystemExit(3)", 3), ("import os; os.kill(os.getpid(), 9)", -9)])
def test_exit_codes_are_reported(server: tuple[Cluster, Any], code: str, reported: int) -> None:
    """137 of a container is signal 9."""
    backend = KubernetesBackend("j1", SETTINGS, server[1])
    backend.start("a", [sys.executable, "-c", code], {})
    deadline_s = time.monotonic() + scaled(30.0)
    while backend.ended() != {"a": reported}:
        assert time.monotonic() < deadline_s, backend.ended()
        time.sleep(0.05)
    backend.close()
    assert backend.living() == []


def test_pod_of_a_lost_host_is_cut_off(server: tuple[Cluster, Any]) -> None:
    """Its kubelet never confirms: the pod leaves the API with no grace."""
    cluster, api = server
    backend = KubernetesBackend("j1", SETTINGS, api)
    backend.start("a", SLEEP, {})
    cluster.lost_hosts.add("host-0")
    backend.end("a")
    assert cluster.graces_s == [0]
    assert backend.living() == []
    backend.start("a", SLEEP, {})
    assert list(backend.living()) == ["a"]


def test_refusals_are_the_servers_own(server: tuple[Cluster, Any]) -> None:
    """Its message is in ours."""
    cluster, api = server
    cluster.refusal = "pods is forbidden: exceeded quota"
    with pytest.raises(UnavailableError, match=r"pod of node a: .* \(403 pods is forbidden: exceeded quota\)"):
        KubernetesBackend("j1", SETTINGS, api).start("a", SLEEP, {})


def test_without_a_kubeconfig_there_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names what to set."""
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(UnavailableError, match="kubeconfig: "):
        connect_api(None)
