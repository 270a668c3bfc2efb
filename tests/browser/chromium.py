"""A headless Chromium, spoken to over a pipe: one process, and one tab that shows page after page.

The protocol is the one that the browser's own developer tools speak: JSON messages that end in a zero byte, over file
descriptors 3 (to the browser) and 4 (from it). Why no library: docs/decisions/0116-pages-in-a-browser.md.
Source: https://chromedevtools.github.io/devtools-protocol
"""

import json
import os
import select
import shutil
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.patience import patience

NAMES = ("chromium", "chromium-browser", "google-chrome")
TIMEOUT_S = 30
OPTIONS = (
    "--headless",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-startup-window",
)
DOMAINS = ("Page", "Runtime", "Log", "Network")

Message = dict[str, Any]


def find_chromium() -> str | None:
    """Return the path of the machine's Chromium, None where it has none."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


@contextmanager
def running_chromium(program: str, folder: Path) -> Iterator["Tab"]:
    """Start a browser with a profile of its own in a folder; yields its tab, and ends it."""
    to_browser, commands = os.pipe()
    answers, from_browser = os.pipe()
    options = [*OPTIONS, f"--user-data-dir={folder}"]
    if os.getuid() == 0:
        options.append("--no-sandbox")  # Chromium refuses to run as root with it
    process = subprocess.Popen(
        # A shell puts the two ends where the browser looks for them; it is bash for numbers of two digits.
        ["bash", "-c", f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}', program, *options],
        pass_fds=(to_browser, from_browser),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        yield open_tab(Pipe(commands=commands, answers=answers))
    finally:
        os.close(commands)  # the browser ends when nobody is left to command it
        os.close(answers)
        try:
            process.wait(patience(TIMEOUT_S))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@dataclass
class Pipe:
    """Both directions of the connection to the browser."""

    commands: int
    answers: int
    _rest: bytes = b""
    _messages: list[Message] = field(default_factory=list)

    def send(self, message: Message) -> None:
        """Send one message."""
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.commands, data) :]

    def receive(self) -> Message:
        """Return the next message; raises TimeoutError, and EOFError where the browser is gone."""
        started_s = time.monotonic()
        while not self._messages:
            ready, _, _ = select.select([self.answers], [], [], TIMEOUT_S)
            if not ready and time.monotonic() - started_s > patience(TIMEOUT_S):
                raise TimeoutError("the browser does not answer")
            data = os.read(self.answers, 1 << 20) if ready else b""
            if ready and not data:
                raise EOFError("the browser ended")
            *whole, self._rest = (self._rest + data).split(b"\0")
            self._messages.extend(map(json.loads, whole))
        return self._messages.pop(0)


def open_tab(pipe: Pipe) -> "Tab":
    """Return a new tab that reports what its pages do."""
    browser = Tab(pipe=pipe, session=None)
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    tab = Tab(pipe=pipe, session=session)
    for domain in DOMAINS:
        tab.call(f"{domain}.enable")
    return tab


@dataclass
class Tab:
    """A tab of the browser, and what has happened in it since the page was opened."""

    pipe: Pipe
    session: str | None
    events: list[Message] = field(default_factory=list)
    _num_calls: int = 0

    def call(self, method: str, **parameters: Any) -> Message:
        """Run a method of the protocol and return its result; raises RuntimeError with the browser's word on it."""
        self._num_calls += 1
        message: Message = {"id": self._num_calls, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.pipe.send(message)
        while True:
            answer = self.pipe.receive()
            if answer.get("id") == self._num_calls and answer.get("sessionId") == self.session:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                result: Message = answer["result"]
                return result
            if "method" in answer:
                self.events.append(answer)

    def await_event(self, method: str, **parameters: Any) -> None:
        """Return when an event with these parameters has happened since the page was opened."""
        while not any(parameters.items() <= event.items() for event in self.happened(method)):
            answer = self.pipe.receive()
            if "method" in answer:
                self.events.append(answer)

    def happened(self, method: str) -> list[Message]:
        """Return the parameters of each event of a kind since the page was opened."""
        return [event["params"] for event in self.events if event["method"] == method]

    def open(self, url: str) -> None:
        """Open a page and return when it has loaded, its scripts run."""
        self.events.clear()
        answer = self.call("Page.navigate", url=url)
        assert "errorText" not in answer, f"{url}: {answer['errorText']}"
        self.await_event("Page.loadEventFired")

    def evaluate(self, expression: str) -> Any:
        """Return what an expression of the page is, as JSON; raises RuntimeError where it throws."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def set_window(self, width: int, height: int = 900) -> None:
        """Give the window a size in pixels; below 600 wide it is a telephone's."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def set_media(self, *, media: str = "", scheme: str = "light") -> None:
        """Show the page on a screen or as printed (`media` "print"), with a preference for light or dark."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", media=media, features=[feature])

    def click(self, selector: str) -> None:
        """Press and release the left button in the middle of the first element that a selector finds."""
        middle = self.evaluate(
            f"""(() => {{
              const element = document.querySelector({json.dumps(selector)});
              element.scrollIntoView({{block: "center"}});
              const box = element.getBoundingClientRect();
              return [box.left + Math.min(box.width, innerWidth - box.left) / 2, box.top + box.height / 2];
            }})()"""
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=middle[0], y=middle[1], button="left", clickCount=1)

    def press(self, key: str, code: int = 0) -> None:
        """Press and release a key on what has the focus."""
        typed = {"text": "\r"} if key == "Enter" else {}  # what a button waits for
        for kind in ("keyDown" if typed else "rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **typed)

    def screenshot(self, path: Path) -> None:
        """Write a picture of the window into a PNG file."""
        path.write_bytes(b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def num_printed_pages(self) -> int:
        """Return on how many sheets of A4 the page is printed."""
        pdf = b64decode(self.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"])
        assert pdf.startswith(b"%PDF")
        return pdf.count(b"/Type /Page\n") or pdf.count(b"/Type /Page ")
