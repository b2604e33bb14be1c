"""Pages in Debian's headless Chromium, for tests marked ``browser``.

With ``FNARRAY_SCREENSHOTS`` naming a folder, what was seen is kept there.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sync_playwright = pytest.importorskip("playwright.sync_api").sync_playwright
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SHOTS = os.environ.get("FNARRAY_SCREENSHOTS")

MARKS = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium; apt-get install chromium"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser for the tests of a file."""
    with sync_playwright() as p:
        found = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


class Page:
    """A page that files are shown in, one after another, used as by a person.

    Attributes
    ----------
    errors : list
        What the console was told of as an error, and exceptions.
    requests : list
        Addresses that were asked for.
    """

    def __init__(self, browser: Any):
        self.shown = browser.new_page()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.shown.on("console", lambda m: m.type == "error" and self.errors.append(m.text))
        self.shown.on("pageerror", lambda error: self.errors.append(str(error)))
        self.shown.on("request", lambda r: self.requests.append(r.url))

    def open(
        self, path: Path, width: int = 1600, height: int = 1000, *, dark: bool = False
    ) -> None:
        """Show a file."""
        self.shown.set_viewport_size({"width": width, "height": height})
        self.shown.emulate_media(color_scheme="dark" if dark else "light")
        self.shown.goto(path.resolve().as_uri())

    def run(self, code: str) -> Any:
        """Return the value of an expression in the page."""
        return self.shown.evaluate(code)

    def click(self, selector: str, *, twice: bool = False) -> None:
        """Click on the first element that a selector names, with the mouse."""
        x, y = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
            "return [b.left + Math.min(b.width / 2, 40), b.top + b.height / 2] })()"
        )
        self.shown.mouse.click(x, y, click_count=2 if twice else 1)

    def key(self, key: str) -> None:
        """Press and release a key."""
        self.shown.keyboard.press(key)

    def wheel(self, selector: str, delta: float) -> None:
        """Turn the wheel over an element."""
        x, y = self.run(
            f"(() => {{ const b = document.querySelector({json.dumps(selector)})"
            ".getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2] })()"
        )
        self.shown.mouse.move(x, y)
        self.shown.mouse.wheel(0, delta)

    def screenshot(self, path: Path) -> None:
        """Write what is shown to a PNG file."""
        self.shown.screenshot(path=path)
