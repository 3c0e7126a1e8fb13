import os
from pathlib import Path

import hypothesis
import numpy as np
import pytest

hypothesis.settings.register_profile("coview", deadline=None, derandomize=True, max_examples=60)
hypothesis.settings.register_profile("search", deadline=None, max_examples=2000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "coview"))


def shared_folder(name: str) -> Path | None:
    """A folder of real data: named by an environment variable, or beside the project, or absent."""
    beside = Path(__file__).parents[2] / "shared" / name
    folder = Path(os.environ.get(f"COVIEW_{name.upper()}", beside))
    return folder if folder.is_dir() else None


def make_blobs(n_samples=90, n_clusters=3, widths=(4, 6, 3), spread=4.0, seed=0):
    """Views of well separated clusters, shuffled, and the true clusters."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n_samples) % n_clusters)
    views = {
        name: rng.normal(size=(n_clusters, d))[truth] * spread + rng.normal(size=(n_samples, d))
        for name, d in zip("abcdefgh", widths, strict=False)
    }
    return views, truth


@pytest.fixture
def blobs():
    return make_blobs()


def rendered(ax):
    """Return the axes after all artists are laid out and drawn, so that an error in an artist is raised."""
    ax.figure.canvas.draw()
    return ax
