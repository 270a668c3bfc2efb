"""The program that runs on a node: reads what QUESTIONS names, prints one JSON value, and changes nothing.

Standard library only, for Python 3.6 and later. It is sent as text to the node's python3; nothing is left there.
"""

import glob
import json
import os
import shutil
import socket
import subprocess
import sys
import threading

QUESTIONS = json.loads(r"""{}""")  # replaced by the sender


def main():  # type: () -> None
    """Read everything, and print it."""
    os.environ["PATH"] = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/local/sbin"
    os.environ["LC_ALL"] = "C"
    reader = Reader()
    for pattern in QUESTIONS["links"]:
        reader.read_links(pattern)
    for pattern in QUESTIONS["files"]:
        reader.read_files(pattern)
    for words in QUESTIONS["commands"]:
        reader.run_all(words)
    reader.read_environment()
    node = {"fabrictune_node": 1, "name": socket.gethostname(), "how": "python3"}
    node.update(sections=reader.sections, unread=reader.unread, is_cut=reader.left <= 0)
    json.dump(node, sys.stdout)
    sys.stdout.write("\n")


class Reader:
    """What was read, and what was not and why."""

    def __init__(self):  # type: () -> None
        self.sections = []  # type: list[dict[str, object]]
        self.unread = []  # type: list[list[str]]
        self.left = QUESTIONS["max_all_bytes"]

    def add(self, kind, name, data, status=0):  # type: (str, str, bytes, int) -> None
        """Add a text, cut to what is left."""
        data = data[: max(self.left, 0)]
        self.left -= len(data)
        lines = data.decode("utf-8", "replace").split("\n")
        if lines and not lines[-1]:
            lines.pop()
        self.sections.append({"kind": kind, "name": name, "status": status, "lines": lines})

    def read_links(self, pattern):  # type: (str) -> None
        """Read where symbolic links lead."""
        for path in sorted(glob.glob(pattern)):
            if os.path.islink(path):
                self.add("link", path, os.path.realpath(path).encode())

    def read_files(self, pattern):  # type: (str) -> None
        """Read the files of a pattern."""
        for path in sorted(glob.glob(pattern)):
            if not os.path.isfile(path):
                continue
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                with os.fdopen(descriptor, "rb") as file:
                    self.add("file", path, file.read(QUESTIONS["max_file_bytes"]))
            except OSError as error:
                self.unread.append([path, error.strerror or "not readable"])

    def run_all(self, words):  # type: (list[str]) -> None
        """Run a command, for each interface or device that it is about."""
        program = shutil.which(words[0])
        if program is None:
            if [words[0], "not installed"] not in self.unread:
                self.unread.append([words[0], "not installed"])
            return
        for netdev in netdevs() if "{netdev}" in words else [""]:
            self.run([word.replace("{netdev}", netdev) for word in words], program)

    def run(self, words, program):  # type: (list[str], str) -> None
        """Run one command, for a limited time and up to a limited size."""
        name = " ".join(words)
        try:
            process = subprocess.Popen(
                words,
                executable=program,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            self.unread.append([name, error.strerror or "cannot be run"])
            return
        assert process.stdout
        assert process.stderr
        errors, error_stream = [], process.stderr
        watch = threading.Thread(target=lambda: errors.append(error_stream.read(4096)), daemon=True)
        watch.start()
        timer = threading.Timer(QUESTIONS["command_timeout_s"], process.kill)
        timer.start()
        output = process.stdout.read(QUESTIONS["max_file_bytes"])
        process.stdout.close()
        status = process.wait()
        timer.cancel()
        watch.join(1)
        if status and not output:
            text = (errors[0] if errors else b"").decode("utf-8", "replace").strip()
            self.unread.append([name, text.split("\n")[0][:200] or "exit status %d" % status])
        else:
            self.add("command", name, output, status)

    def read_environment(self):  # type: () -> None
        """Read the settings of collectives in the environments of this user's processes, by their names only."""
        prefixes = tuple(name.encode() for name in QUESTIONS["environment"])
        if not prefixes:
            return
        found = set()  # type: set[bytes]
        for path in glob.glob("/proc/[0-9]*/environ"):
            try:
                with open(path, "rb") as file:
                    found.update(one for one in file.read(2**20).split(b"\0") if one.startswith(prefixes))
            except OSError:
                continue  # of another user, or over by now
        if found:
            self.add("environment", "processes", b"\n".join(one.replace(b"\n", b" ") for one in sorted(found)))


def netdevs():  # type: () -> list[str]
    """Return the network interfaces of devices; where there are none, all but the loopback. None on a switch."""
    if os.path.exists("/etc/sonic/config_db.json"):
        return []
    names = sorted(os.path.basename(path) for path in glob.glob("/sys/class/net/*"))
    real = [name for name in names if os.path.exists("/sys/class/net/%s/device" % name)]
    return (real or [name for name in names if name != "lo"])[:64]


main()
