"""Where the local environment keeps things.

Downloads and builds live outside the checkout, so that a fresh clone finds them
again. What runs is recorded inside the checkout, so that two checkouts never
stop each other's processes.
"""

import os
from pathlib import Path


def repo_root() -> Path:
    """Return the root of the checkout this package is run from.

    Raises:
        FileNotFoundError: the package is not inside a checkout (for example
            installed from a wheel), where it has nothing to work on.
    """
    for parent in Path(__file__).resolve().parents:
        if (parent / "pyproject.toml").is_file():
            return parent
    raise FileNotFoundError(f"no pyproject.toml above {__file__}: outbox_dev runs from a checkout")


def cache_dir(*parts: str) -> Path:
    """Return (and create) a folder for downloads and builds.

    It is `$OUTBOX_RELAY_CACHE`, or `outbox-relay` in the user's cache folder by
    the XDG base directory rules.
    """
    configured = os.environ.get("OUTBOX_RELAY_CACHE")
    if configured:
        base = Path(configured)
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "outbox-relay"
    path = base.absolute().joinpath(*parts)
    path.mkdir(parents=True, exist_ok=True)
    return path


def state_dir() -> Path:
    """Return (and create) the folder that records what runs and holds its data.

    It is `$OUTBOX_DEV_STATE`, or `.build/dev` in the checkout.
    """
    configured = os.environ.get("OUTBOX_DEV_STATE")
    path = Path(configured).absolute() if configured else repo_root() / ".build" / "dev"
    path.mkdir(parents=True, exist_ok=True)
    return path
