import pytest

from coview.base.text import (
    count,
    decimals,
    listed,
    percent,
    plural,
    rounded,
    seconds,
    shortened,
    shortened_apart,
)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ([count(50000)], ["50,000"]),
        ([plural(1, "sample"), plural(1797, "sample")], ["1 sample", "1,797 samples"]),
        ([decimals(x) for x in (0.1234, 1234567.0, 0.0003412, None)], ["0.12", "1.23e+06", "0.0003", "–"]),
        ([decimals(x) for x in (0.997, 0.99951, 0.003, 1.0004)], ["0.997", "0.9995", "0.003", "1.0004"]),
        ([decimals(x, 3) for x in (0.997, 0.9999, -0.99996)], ["0.997", "0.9999", "\N{MINUS SIGN}0.99996"]),
        ([decimals(x) for x in (1.0, 1 - 1e-15, 1e-12, -2e-17)], ["1.00", "1.00", "0.00", "0.00"]),
        ([decimals(x) for x in (0.00003, 2e-6, 2e-7)], ["0.00003", "0.000002", "0.00"]),
        ([decimals(x) for x in (-0.25, 0.0)], ["\N{MINUS SIGN}0.25", "0.00"]),
        ([decimals(x, sign=True) for x in (1.5, -1.5)], ["+1.50", "\N{MINUS SIGN}1.50"]),
        (
            [decimals(x, bounds=(0.6, 0.75)) for x in (0.5949, 0.59999, 0.6, 0.7504)],
            ["0.59", "0.59999", "0.60", "0.7504"],
        ),
        ([decimals(x, bounds=(0.6,)) for x in (0.6 - 1e-12, -0.599)], ["0.60", "\N{MINUS SIGN}0.599"]),
        ([percent(x) for x in (0.00996, 0.01, 0.012, 0.9902)], ["0.996%", "1%", "1%", "99.02%"]),
        ([percent(x) for x in (0.123, 0.004, None)], ["12%", "0.4%", "–"]),
        ([percent(x) for x in (1e-12, -1e-17, 1 - 1e-15, 2e-6)], ["0%", "0%", "100%", "0.0002%"]),
        ([percent(x) for x in (0.0, 1.0, 0.9996)], ["0%", "100%", "99.96%"]),
        ([percent(x) for x in (0.99996, 0.0003, 0.00004, 0.994)], ["99.996%", "0.03%", "0.004%", "99.4%"]),
        (
            [shortened("ENSG10000000001234", 18), shortened("ENSG10000000001234", 10)],
            ["ENSG10000000001234", "ENSG1…1234"],
        ),
        ([seconds(x) for x in (0.0123, 2.5, 75, 7260)], ["12 ms", "2.5 s", "1 min 15 s", "2 h 1 min"]),
        ([rounded("RBF(sigma2=9.277343749999998)")], ["RBF(sigma2=9.277)"]),
        ([listed(["text"]), listed(["text", "image"])], ["text", "text and image"]),
        ([listed(["text", "image", "sound"])], ["text, image and sound"]),
    ],
)
def test_numbers_are_formatted_for_readers(shown, expected):
    assert shown == expected


def test_short_names_keep_the_part_in_which_they_differ():
    names = [f"surface_marker_of_protein_number_{i}_after_normalisation" for i in (3, 47)]
    short = shortened_apart([*names, "CD4", "ENSG1000000000000000066"], 20)
    assert "3" in short[names[0]]
    assert "47" in short[names[1]]
    assert short["CD4"] == "CD4"
    assert short["ENSG1000000000000000066"] == "ENSG100000…000000066"
    assert max(map(len, short.values())) == 20


def test_short_names_with_several_differences_are_different():
    names = [f"surface_{a}_marker_of_the_protein_{b}_after_normalisation" for a in "xyz" for b in range(4)]
    for most in (12, 18, 24):
        short = shortened_apart([*names, "CD4"], most)
        assert len({*short.values()}) == len(names) + 1
        assert max(map(len, short.values())) <= most
