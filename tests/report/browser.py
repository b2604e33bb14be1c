"""A page in a headless Chromium, driven over a pipe: no library, no port, no network."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
KEYS = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "Tab": 9, "Backspace": 8}


class Page:
    """A page, its errors and its requests.

    Attributes
    ----------
    errors : list
        What the console was told of as an error, and exceptions.
    requests : list
        Addresses that were asked for.
    """

    def __init__(self, profile: Path, timeout: float = 60):
        here, there = os.pipe(), os.pipe()  # what it reads, what it writes
        command = (
            f'exec "$0" "$@" 3<&{here[0]} 4>&{there[1]}',
            str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--hide-scrollbars", f"--user-data-dir={profile}", "--remote-debugging-pipe",
            "about:blank",
        )  # fmt: skip
        self._process = subprocess.Popen(
            ["bash", "-c", *command],
            pass_fds=(here[0], there[1]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(here[0])
        os.close(there[1])
        self._out, self._in = here[1], there[0]
        self._timeout, self._number, self._data, self._session = timeout, 0, b"", None
        self._events = []
        self.errors, self.requests = [], []
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        found = self._ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._ask(f"{domain}.enable")

    def close(self) -> None:
        """End the browser."""
        with contextlib.suppress(OSError):
            self._session = None
            self._send("Browser.close")
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def _send(self, method: str, **params: object) -> int:
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        return self._number

    def _ask(self, method: str, **params: object) -> dict:
        number = self._send(method, **params)
        while True:
            message = self._next(method)
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self._note(message)

    def _next(self, what: str) -> dict:
        until = time.monotonic() + self._timeout
        while b"\0" not in self._data:
            if not select.select([self._in], [], [], max(until - time.monotonic(), 0))[0]:
                raise TimeoutError(f"the browser did not answer: {what}")
            data = os.read(self._in, 1 << 20)
            if not data:
                raise RuntimeError("the browser has ended")
            self._data += data
        line, self._data = self._data.split(b"\0", 1)
        return json.loads(line)

    def _note(self, message: dict) -> None:
        method, params = message.get("method"), message.get("params", {})
        self._events.append(method)
        if method == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"])
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"])
        elif method == "Runtime.consoleAPICalled" and params["type"] == "error":
            self.errors.append(params)
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def open(
        self, path: Path, width: int = 1600, height: int = 1000, *, dark: bool = False
    ) -> None:
        """Show a file."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._ask("Emulation.setEmulatedMedia", features=scheme)
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self._events.clear()
        self._ask("Page.navigate", url=path.resolve().as_uri())
        while "Page.loadEventFired" not in self._events:
            self._note(self._next("load"))

    def run(self, code: str) -> object:
        """Return the value of an expression in the page."""
        found = self._ask("Runtime.evaluate", expression=code, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{code}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def click(self, selector: str, *, twice: bool = False) -> None:
        """Click in the middle of the first element that a selector names, with the mouse."""
        spot = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
            "return [b.left + Math.min(b.width / 2, 40), b.top + b.height / 2] })()"
        )
        for count in (1, 2) if twice else (1,):
            for kind in ("mousePressed", "mouseReleased"):
                self._ask(
                    "Input.dispatchMouseEvent",
                    type=kind,
                    x=spot[0],
                    y=spot[1],
                    button="left",
                    buttons=int(kind == "mousePressed"),
                    clickCount=count,
                )

    def key(self, key: str) -> None:
        """Press and release a key."""
        about: dict[str, object] = {"key": key, "code": key}
        if key in KEYS:
            about["windowsVirtualKeyCode"] = KEYS[key]
        if len(key) == 1:
            about["text"] = key
        for kind in ("keyDown", "keyUp"):
            self._ask("Input.dispatchKeyEvent", type=kind, **about)

    def wheel(self, selector: str, delta: float) -> None:
        """Turn the wheel over an element."""
        x, y = self.run(
            f"(() => {{ const b = document.querySelector({json.dumps(selector)})"
            ".getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2] })()"
        )
        self._ask("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=delta)

    def screenshot(self, path: Path) -> None:
        """Write what is shown to a PNG file."""
        data = self._ask("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))
