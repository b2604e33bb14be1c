"""Let the site that ``asv publish`` wrote be looked at without a network.

    asv publish && python offline.py

Its page loads jQuery, Flot and Bootstrap from three hosts. They are put beside it, from npm's
registry by ``npm pack``, each compared with the hash that is written down here: where npm has the
same file, that is the hash in asv's page. Run again it has nothing to do.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tarfile
import tempfile
from base64 import b64encode
from pathlib import Path
from urllib.parse import urlsplit

#: What the page loads, by the name of its file: npm's package, the file in it, its sha256.
FILES = {
    "jquery-3.3.1.min.js": (
        "jquery@3.3.1", "dist/jquery.min.js", "FgpCb/KJQlLNfOu91ta32o/NMZxltwRo8QtmkMRdAu8="),
    "jquery.flot.min.js": (
        "flot@0.8.3", "jquery.flot.js", "t7kx8nPDixJ3ucbB9OBcTsCYhaSHvdrzJ54tfkmjjhI="),
    "jquery.flot.time.min.js": (
        "flot@0.8.3", "jquery.flot.time.js", "pYLIMq3HE4prBar2HxbrrCdHAfG+Sv6nfnOaHDS5xBo="),
    "jquery.flot.selection.min.js": (
        "flot@0.8.3", "jquery.flot.selection.js", "5shfbB6+S02inYriOMfFBgKD8F9+8FT2uRgX0CwJKRg="),
    "jquery.flot.categories.min.js": (
        "flot@0.8.3", "jquery.flot.categories.js", "boFmSyjqeVxzSQb0qhVhRkCnWsf705mn+5CEBAaYNRo="),
    "jquery.flot.orderBars.js": (
        "flot-orderbars@1.0.0", "js/jquery.flot.orderBars.js",
        "OXNbT0b5b/TgglckAfR8VaJ2ezZv0dHoIeRKjYMKEr8="),
    "stupidtable.min.js": (
        "stupid-table-plugin@1.1.3", "stupidtable.min.js",
        "RkI4Dyjr6e18rCUXk7KB74YgxDhiBdkniPmxL1zOtOA="),
    "md5.min.js": (
        "blueimp-md5@2.19.0", "js/md5.min.js", "ZNfe04jFYuS96eWM4gXl+gG5c0/NQ01Jbre0+/6bkn0="),
    "bootstrap.min.js": (
        "bootstrap@3.1.1", "dist/js/bootstrap.min.js",
        "iY0FoX8s/FEg3c26R6iFw3jAtGbzDwcA5QJ1fiS0A6E="),
    "bootstrap.min.css": (
        "bootstrap@3.1.1", "dist/css/bootstrap.min.css",
        "6VA0SGkrc43SYPvX98q/LhHwm2APqX5us6Vuulsafps="),
}  # fmt: skip
#: A script or style sheet of another host, and what guards it there.
_ELSEWHERE = re.compile(
    r'(<(?:script|link)\b[^>]*?\b(?:src|href)=")(https?://[^"]+)(")'
    r'( integrity="[^"]*")?( crossorigin="[^"]*")?'
)


def rewritten(page: str) -> tuple[str, list[str]]:
    """Return a page that loads what lies beside it, and the names of what must lie there.

    Raises
    ------
    SystemExit
        It loads something that the table does not have: another version of asv.
    """
    wanted: list[str] = []

    def local(found: re.Match[str]) -> str:
        name = Path(urlsplit(found[2]).path).name
        if name not in FILES:
            raise SystemExit(
                f"offline: the page loads {found[2]}, which is not in the table of this file: "
                "asv is of another version. Add the package that has it."
            )
        wanted.append(name)
        return f"{found[1]}vendor/{name}{found[3]}"

    return _ELSEWHERE.sub(local, page), wanted


def fetched(package: str, names: list[str]) -> dict[str, bytes]:
    """Return files of one package of npm's, by the names that the page has for them."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", "--pack-destination", folder, package]
        try:
            subprocess.run(command, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise SystemExit(
                f"offline: {package} cannot be fetched ({error}). It takes npm and its registry, "
                "once; the page is as it was."
            ) from None
        with tarfile.open(next(Path(folder).glob("*.tgz"))) as packed:
            found = {name: packed.extractfile(f"package/{FILES[name][1]}") for name in names}
            return {name: file.read() for name, file in found.items() if file}


def main(folder: Path) -> None:
    """Put beside a site what its page loads, and have the page load that."""
    page = folder / "index.html"
    if not page.exists():
        raise SystemExit(f"offline: there is no {page}. Run asv publish first.")
    text, wanted = rewritten(page.read_text(encoding="utf-8"))
    packages: dict[str, list[str]] = {}
    for name in wanted:
        packages.setdefault(FILES[name][0], []).append(name)
    files = {
        n: data
        for package, names in packages.items()
        for n, data in fetched(package, names).items()
    }
    for name in wanted:
        told = b64encode(hashlib.sha256(files[name]).digest()).decode()
        if told != FILES[name][2]:
            raise SystemExit(
                f"offline: {name} of {FILES[name][0]} has the sha256 {told}, and {FILES[name][2]} "
                "was expected. Nothing was written."
            )
    (folder / "vendor").mkdir(exist_ok=True)
    for name, data in files.items():
        (folder / "vendor" / name).write_bytes(data)
    page.write_text(text, encoding="utf-8")
    print(f"{page}: {len(files)} files beside it, {sum(map(len, files.values())):,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "html"))
