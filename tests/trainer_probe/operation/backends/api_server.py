"""A stand-in for an API server of Kubernetes: its own paths and answers over HTTP, and a kubelet that runs commands.

The shapes of answers are those of Kubernetes 1.31. A pod's first container is a process of this machine.

Left out: authentication, admission, scheduling, watches.
"""

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

CREATED = "2026-01-01T00:00:00Z"
PODS = re.compile(r"/api/v1/namespaces/([^/]+)/pods(?:/([^/]+))?")
NODES = re.compile(r"/api/v1/nodes/([^/]+)")


@dataclass(kw_only=True)
class Cluster:
    """Pods, their processes, and what was asked."""

    pods: dict[str, dict[str, Any]] = field(default_factory=dict)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    lost_hosts: set[str] = field(default_factory=set)
    graces_s: list[int] = field(default_factory=list)
    refusal: str = ""  # of pods that are created
    lock: threading.Lock = field(default_factory=threading.Lock)

    def create(self, namespace: str, manifest: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Run a pod on a host of its own."""
        if self.refusal:
            return 403, status(403, "Forbidden", self.refusal)
        name = f"{manifest['metadata']['generateName']}{len(self.processes):05d}"
        metadata = {**manifest["metadata"], "name": name, "namespace": namespace, "creationTimestamp": CREATED}
        first = manifest["spec"]["containers"][0]
        environment = {entry["name"]: entry["value"] for entry in first["env"] if "value" in entry}
        self.processes[name] = subprocess.Popen(first["command"], stdin=subprocess.DEVNULL, env=environment)
        pod = {
            **manifest,
            "metadata": metadata,
            "spec": {**manifest["spec"], "nodeName": f"host-{len(self.processes) - 1}"},
        }
        self.pods[name] = {**pod, "status": {"phase": "Running"}}
        return 201, self.pods[name]

    def look(self) -> None:
        """Let the kubelets report what has ended; those of lost hosts report nothing."""
        for name, pod in list(self.pods.items()):
            code = self.processes[name].poll()
            if code is None or pod["spec"]["nodeName"] in self.lost_hosts:
                continue
            if "deletionTimestamp" in pod["metadata"]:
                del self.pods[name]
                continue
            shown = 128 - code if code < 0 else code
            first = pod["spec"]["containers"][0]
            ended = {"exitCode": shown, "reason": "Error" if code else "Completed"}
            pod["status"] = {
                "phase": "Failed" if code else "Succeeded",
                "containerStatuses": [
                    {
                        "name": first["name"],
                        "image": first["image"],
                        "imageID": "",
                        "ready": False,
                        "restartCount": 0,
                        "state": {"terminated": ended},
                    }
                ],
            }

    def delete(self, name: str, grace_s: int) -> tuple[int, dict[str, Any]]:
        """Take a pod from the API, at once or when its kubelet has ended it."""
        if name not in self.pods:
            return 404, status(404, "NotFound", f'pods "{name}" not found')
        self.graces_s.append(grace_s)
        pod = self.pods[name]
        pod["metadata"] = {**pod["metadata"], "deletionTimestamp": CREATED}
        if pod["spec"]["nodeName"] not in self.lost_hosts:
            self.processes[name].kill()
        if grace_s == 0:
            del self.pods[name]
        return 200, pod

    def answer(self, method: str, target: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return the code and content for a request."""
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        with self.lock:
            self.look()
            if found := NODES.fullmatch(parts.path):
                return 200, self.host(found[1])
            if not (found := PODS.fullmatch(parts.path)):
                return 404, status(404, "NotFound", "the server could not find the requested resource")
            namespace, name = found.groups()
            if method == "POST":
                return self.create(namespace, body)
            if method == "DELETE":
                grace_s = query.get("gracePeriodSeconds", body.get("gracePeriodSeconds", 30))
                return self.delete(name, int(grace_s))
            wanted = dict(part.split("=") for part in query.get("labelSelector", "").split(",") if part)
            items = [pod for pod in self.pods.values() if wanted.items() <= pod["metadata"]["labels"].items()]
            return 200, {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items}

    def host(self, name: str) -> dict[str, Any]:
        """Return a host, which is ready or of which nothing is known."""
        ready = {"type": "Ready", "status": "Unknown" if name in self.lost_hosts else "True"}
        return {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name}, "status": {"conditions": [ready]}}


def status(code: int, reason: str, message: str) -> dict[str, Any]:
    """Return an API server's answer to what it refuses."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


@contextmanager
def api_server() -> Iterator[tuple[Cluster, str]]:
    """Yield a cluster and the address of its API server; its processes end with the context."""
    cluster = Cluster()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else {}
            code, content = cluster.answer(self.command, self.path, body)
            data = json.dumps(content).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = _answer

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield cluster, f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
            for process in cluster.processes.values():
                with suppress(ProcessLookupError):
                    process.kill()
                process.wait()
