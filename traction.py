"""The `traction` command: makes sure that our own packages are the ones that Python finds, then runs the command line.

`schemas`, `detectors` and `streams` are common names, and whatever comes first on Python's path wins. Running with
somebody else's would fail somewhere deep inside, so that is found out here, before anything of ours is imported.
"""

import base64
import hashlib
import importlib.metadata
import importlib.util
import sys
from pathlib import Path

PACKAGES = ("schemas", "detectors", "streams")
"""Our top-level packages; each lies beside this file, in a checkout as in an installation."""

EXIT_BROKEN_INSTALLATION = 2

EXIT_INTERRUPTED = 130
"""128 + SIGINT, as in `streams.cli`, which may not have been imported yet."""


def find(name: str) -> Path | None:
    """Tell what `import name` would load, without loading it.

    Args:
        name: a top-level package or module.

    Returns:
        The package's directory or the module's file; None when there is neither.
    """
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__spec__ is None:
        return Path(getattr(loaded, "__file__", None) or ".").resolve()
    spec = importlib.util.find_spec(name)
    if spec is None:
        return None
    if spec.origin is None or spec.origin in {"built-in", "frozen"}:  # a directory without __init__.py
        return next((Path(place).resolve() for place in spec.submodule_search_locations or ()), None)
    origin = Path(spec.origin).resolve()
    return origin.parent if spec.submodule_search_locations is not None else origin


def overwritten(name: str) -> bool:
    """Tell whether another distribution was installed over our package, into the same directory.

    An installation records the hash of each file it wrote; a checkout has no such record and is not asked.

    Args:
        name: one of `PACKAGES`.
    """
    try:
        files = importlib.metadata.files("traction") or []
    except importlib.metadata.PackageNotFoundError:
        return False
    for file in files:
        if file.as_posix() == f"{name}/__init__.py" and file.hash is not None:
            digest = hashlib.new(file.hash.mode, Path(file.locate()).read_bytes()).digest()
            return base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != file.hash.value
    return False


def faults() -> list[str]:
    """List in plain words which of our packages Python would not load from beside this file, and what to do."""
    here = Path(__file__).resolve().parent
    found: list[str] = []
    for name in PACKAGES:
        ours, place = here / name, find(name)
        if not (ours / "__init__.py").is_file():
            found.append(
                f"the package `{name}` is missing: it should be in {ours}\n"
                "  remedy: install Traction again: make clean setup in its checkout"
            )
        elif place != ours:
            found.append(
                f"`import {name}` finds {place or 'nothing'}\n"
                f"  instead of ours, {ours}\n"
                f"  remedy: {remedy(place, here)}"
            )
        elif overwritten(name):
            found.append(
                f"another distribution has been installed over our package `{name}` in {ours}\n"
                "  remedy: install Traction in an environment of its own (python3 -m venv ...)"
            )
    return found


def remedy(place: Path | None, here: Path) -> str:
    """Say what to do about a package that is loaded from the wrong place.

    Args:
        place: what Python would load.
        here: where our packages are.
    """
    if place is None:
        return f"install Traction again, or put {here} on Python's path"
    if "site-packages" in place.parts or "dist-packages" in place.parts:
        return (
            "uninstall the other distribution, or install Traction in an environment of its own (python3 -m venv ...)"
        )
    return f"take {place.parent} off PYTHONPATH, or start `traction` (not `python -m traction`) from another directory"


def main() -> None:
    """Run the command line; Ctrl-C ends it without a traceback from its first imports on."""
    try:
        start()
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)


def start() -> None:
    """Run the command line, or say why it cannot run and exit with 2."""
    wrong = faults()
    if wrong:
        for fault in wrong:
            sys.stderr.write(f"traction: {fault}\n")
        sys.exit(EXIT_BROKEN_INSTALLATION)
    from streams.cli import main as run  # noqa: PLC0415 - only now is it sure to be ours

    run()


if __name__ == "__main__":
    main()
