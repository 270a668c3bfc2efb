"""Nodes as pods of Kubernetes, which survive the driver that created them.

A pod is made from a template of the user's: labels of the job and node, no restart by the kubelet, an anti-affinity
that gives each node a host of its own, and the executor's command are added. Its first container must say what it
requests. Values of secrets never pass: a variable refers to a Secret's key.

A pod is deleted with a second's grace, and its node has ended once the pod is gone: the kubelet has then confirmed
that its containers are. A kubelet that has lost its host confirms nothing. After the limit, or at once where the host
is not ready, the pod is deleted with no grace, which only takes it from the API: its node counts as cut off, and the
generation's number keeps out what is left of it.

Source: Kubernetes 1.31, "Pod Lifecycle" (termination, forced), "Assigning Pods to Nodes"; the official client.

Left out: Jobs, JobSets and Volcano's gangs, which restart or schedule by rules of their own; the driver's own pod.
"""

import copy
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from fabrictune.foundation.errors import InputError, Mistake, UnavailableError
from fabrictune.foundation.extras import require_extra
from fabrictune.trainer_probe.operation.backends.exit_codes import UNKNOWN_CODE, from_shell

JOB_LABEL, NODE_LABEL = "fabrictune/job", "fabrictune/node"
ENDED_PHASES = ("Succeeded", "Failed")
HOST_KEY = "kubernetes.io/hostname"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?")


@dataclass(frozen=True, kw_only=True)
class KubernetesSettings:
    """How the pods of nodes are created."""

    template: Mapping[str, Any]  # a pod's `metadata` and `spec`, as in a manifest
    namespace: str = "default"
    secrets: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # variable: name of a Secret, and its key
    context: str | None = None  # of the kubeconfig; in a pod its service account is used
    grace_s: int = 1
    end_timeout_s: float = 60.0  # until a deleted pod is taken from the API without its kubelet's word
    request_timeout_s: float = 30.0
    poll_s: float = 0.5


class KubernetesBackend:
    """The nodes of one job as pods. `api` is made from the settings where it is not given."""

    def __init__(self, job: str, settings: KubernetesSettings, api: Any = None) -> None:
        mistakes = [*_mistaken_name("job", job), *_mistakes_of_template(settings.template)]
        if mistakes:
            raise InputError(*mistakes)
        self._job, self._settings = job, settings
        self._api: Any = connect_api(settings.context) if api is None else api
        self._pods: dict[str, str] = {}  # names by node, of this driver's pods and of those it has found
        self._pods.update({_node_of(pod): pod.metadata.name for pod in self._list() if not _has_ended(pod)})

    def start(self, node: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Create a node's pod; raises UnavailableError where the API server refuses it."""
        if mistakes := list(_mistaken_name("node", node)):
            raise InputError(*mistakes)
        manifest = make_manifest(self._job, node, command, environment, self._settings)
        with _told(f"pod of node {node}"):
            created = self._api.create_namespaced_pod(
                self._settings.namespace, manifest, _request_timeout=self._settings.request_timeout_s
            )
        self._pods[node] = created.metadata.name

    def end(self, node: str) -> None:
        """Delete a node's pod; returns when its containers are gone, or it is cut off."""
        if node not in self._pods:
            return
        deadline_s = time.monotonic() + self._settings.end_timeout_s
        is_asked = False
        while (pod := self._find(node)) is not None:
            if _has_ended(pod) or time.monotonic() > deadline_s or not self._is_ready(pod.spec.node_name):
                self._delete(node, 0)
                return
            if not is_asked:
                self._delete(node, self._settings.grace_s)
                is_asked = True
            time.sleep(self._settings.poll_s)

    def ended(self) -> Mapping[str, int]:
        """Return the exit codes of nodes whose pods have ended or are gone, negative for a signal."""
        pods = {pod.metadata.name: pod for pod in self._list()}
        return {
            node: UNKNOWN_CODE if name not in pods else _exit_code(pods[name])
            for node, name in dict(self._pods).items()  # a start may add one meanwhile
            if name not in pods or _has_ended(pods[name])
        }

    def living(self) -> Collection[str]:
        """Return the nodes whose pods wait or run, of this driver and of earlier ones."""
        return sorted({_node_of(pod) for pod in self._list() if not _has_ended(pod)})

    def close(self) -> None:
        """End all nodes."""
        for node in list(self._pods):
            self.end(node)

    def _list(self) -> list[Any]:
        with _told(f"pods of job {self._job}"):
            found = self._api.list_namespaced_pod(
                self._settings.namespace,
                label_selector=f"{JOB_LABEL}={self._job}",
                _request_timeout=self._settings.request_timeout_s,
            )
        return list(found.items)

    def _find(self, node: str) -> Any | None:
        return next((pod for pod in self._list() if pod.metadata.name == self._pods[node]), None)

    def _delete(self, node: str, grace_s: int) -> None:
        from kubernetes.client.exceptions import ApiException

        try:
            with _told(f"pod {self._pods[node]}"):
                self._api.delete_namespaced_pod(
                    self._pods[node],
                    self._settings.namespace,
                    grace_period_seconds=grace_s,
                    _request_timeout=self._settings.request_timeout_s,
                )
        except UnavailableError as error:
            if not (isinstance(error.__cause__, ApiException) and error.__cause__.status == 404):
                raise

    def _is_ready(self, host: str | None) -> bool:
        """Return whether a kubelet answers for a host; a pod without one has nothing to end."""
        if not host:
            return False
        with _told(f"host {host}"):
            found = self._api.read_node(host, _request_timeout=self._settings.request_timeout_s)
        conditions = {condition.type: condition.status for condition in found.status.conditions or ()}
        return conditions.get("Ready") == "True"


def connect_api(context: str | None) -> Any:
    """Return the API by a pod's service account or the user's kubeconfig; raises UnavailableError without either."""
    require_extra("kubernetes", extra="kubernetes", where="backend kubernetes")
    from kubernetes import client
    from kubernetes import config as untyped

    config: Any = untyped
    try:
        if context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
            config.load_incluster_config()
        else:
            config.load_kube_config(context=context)
    except config.ConfigException as error:
        raise UnavailableError(
            Mistake(where="kubeconfig", found=str(error).splitlines()[0][:300], next_step="set KUBECONFIG")
        ) from None
    return client.CoreV1Api()


def make_manifest(
    job: str, node: str, command: Sequence[str], environment: Mapping[str, str], settings: KubernetesSettings
) -> dict[str, Any]:
    """Return the manifest of a node's pod."""
    template: dict[str, Any] = copy.deepcopy({part: settings.template.get(part) or {} for part in ("metadata", "spec")})
    spec = template["spec"]
    first = spec["containers"][0]
    first["command"], first["args"] = list(command), []
    references: list[dict[str, Any]] = [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
        for name, (secret, key) in settings.secrets.items()
    ]
    own = [{"name": name, "value": value} for name, value in environment.items() if name not in settings.secrets]
    replaced = {*settings.secrets, *environment}
    kept = [entry for entry in first.get("env") or () if entry["name"] not in replaced]
    first["env"] = [*kept, *own, *references]
    apart = {"topologyKey": HOST_KEY, "labelSelector": {"matchLabels": {JOB_LABEL: job}}}
    affinity = spec.setdefault("affinity", {}).setdefault("podAntiAffinity", {})
    affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", []).append(apart)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **{name: value for name, value in template["metadata"].items() if name != "name"},
            "generateName": f"fabrictune-{job}-{node}-",
            "labels": {**(template["metadata"].get("labels") or {}), JOB_LABEL: job, NODE_LABEL: node},
        },
        "spec": {**spec, "restartPolicy": "Never", "terminationGracePeriodSeconds": settings.grace_s},
    }


def _mistakes_of_template(template: Mapping[str, Any]) -> Iterable[Mistake]:
    spec = template.get("spec")
    containers = spec.get("containers") if isinstance(spec, Mapping) else None
    if not isinstance(containers, Sequence) or not containers or not isinstance(containers[0], Mapping):
        yield Mistake(where="template: spec.containers", found=repr(containers), allowed="a list of at least one")
        return
    first = containers[0]
    if not first.get("image"):
        yield Mistake(where="template: spec.containers[0].image", found="missing", allowed="an image's name")
    resources = first.get("resources")
    if not isinstance(resources, Mapping) or not (resources.get("requests") or resources.get("limits")):
        yield Mistake(
            where="template: spec.containers[0].resources.requests",
            found="missing",
            allowed="what a node needs, such as cpu, memory, nvidia.com/gpu",
            next_step="without them Kubernetes may put nodes where they have no room",
        )


def _mistaken_name(where: str, name: str) -> Iterable[Mistake]:
    if not _NAME.fullmatch(name):
        yield Mistake(where=where, found=repr(name), allowed="a-z, 0-9 and - between, at most 30")


def _node_of(pod: Any) -> str:
    return str(pod.metadata.labels[NODE_LABEL])


def _has_ended(pod: Any) -> bool:
    return pod.status is not None and pod.status.phase in ENDED_PHASES


def _exit_code(pod: Any) -> int:
    """Return the exit code of a pod's first container; one whose host was lost or that was evicted has none."""
    statuses = pod.status.container_statuses or ()
    name = pod.spec.containers[0].name
    states = [status.state.terminated for status in statuses if status.name == name and status.state is not None]
    return UNKNOWN_CODE if not states or states[0] is None else from_shell(states[0].exit_code)


@contextmanager
def _told(where: str) -> Iterator[None]:
    """Turn the client's errors into an UnavailableError with the server's own words."""
    from kubernetes.client.exceptions import ApiException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except ApiException as error:
        said = re.search(r'"message":\s*"([^"]*)"', error.body or "")
        found = f"the API server refuses ({error.status} {said[1] if said else error.reason})"
        raise UnavailableError(Mistake(where=where, found=found[:300])) from error
    except HTTPError as error:
        found = f"the API server cannot be reached ({type(error).__name__})"
        raise UnavailableError(Mistake(where=where, found=found)) from error
