"""Store the nets of this version: `python -m tests.nets.store`, in a commit of its own that states the reason."""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path

import numpy as np

from tests.nets import commands, settings
from tests.nets.interface import interface

FOLDER = Path(__file__).parent
NUMBERS, TEXTS, INTERFACE = (FOLDER / name for name in ("numbers.npz", "texts.json.gz", "interface.json"))


def main() -> None:
    """Write the three files."""
    numbers = {"arithmetic": settings.arithmetic()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in settings.SETTINGS:
            numbers |= {f"{name}: {key}": value for key, value in settings.results(name).items()}
        texts = commands.results()
    np.savez_compressed(NUMBERS, **numbers)
    TEXTS.write_bytes(gzip.compress(json.dumps(texts).encode(), mtime=0))
    INTERFACE.write_text(json.dumps(interface(), indent=1) + "\n")


if __name__ == "__main__":
    main()
