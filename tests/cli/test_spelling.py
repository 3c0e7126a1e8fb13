"""Python arguments in messages become options."""

import pytest

from coview.cli.spelling import in_options


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("keep only the common samples (align='inner')", "keep only the common samples (--align inner)"),
        ("use it as the ids (ids='patient id')", "use it as the ids (--ids 'patient id')"),
        ('use it as the ids (ids="it\'s"), or', "use it as the ids (--ids 'it'\"'\"'s'), or"),
        ("or pair the samples by row order (ids=False)", "or pair the samples by row order (--no-ids)"),
        ("name the column of the ids (ids=…)", "name the column of the ids (--ids COLUMN)"),
        ("n_clusters=91: expected an integer", "-k 91: expected an integer"),
        ("rho=1.5: expected a number", "--rho 1.5: expected a number"),
        ("as in FixedSize(Coview(…), n_train=5000)", "as in --method coview --n-train 5000"),
        ("use kernel='auto', or set dtype='float32'", "use --kernel auto"),
        ("view 'a' (ids.csv) has the column 'kids=3'", "view 'a' (ids.csv) has the column 'kids=3'"),
    ],
)
def test_arguments_become_options(message, expected):
    assert in_options(message) == expected
