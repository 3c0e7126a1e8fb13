import pytest

from coview.cli import app
from tests.cli.running import split_blobs


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    pytest.importorskip("pyarrow", reason="tables need pyarrow: pip install 'coview[io]'")
    return split_blobs(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def fitted(data):
    """A run made once, for tests that only read it."""
    run = data["folder"] / "run"
    with pytest.raises(SystemExit) as stop:
        app(["fit", *data["train_files"], "--ids=id", "-k3", "--no-report", "--quiet", "-o", str(run)])
    assert stop.value.code == 0
    return run
