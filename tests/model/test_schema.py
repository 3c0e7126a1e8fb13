"""Schema: new views are compared with those of the fit."""

import numpy as np
import pandas as pd
import pytest

from coview import InputError, as_views
from coview.model.schema import Schema


def nothing(view):
    return False


def learnt(views, **settings):
    return Schema.learn(as_views(views), nothing, **{"may_lack_views": False, **settings})[0]


def matched(schema, views):
    return schema.matched(schema.read(views, None), views, "KSC")


A, B = np.arange(12.0).reshape(6, 2), np.arange(18.0).reshape(6, 3)


def test_views_get_the_order_of_the_training_views():
    schema = learnt({"a": A, "b": B})
    assert schema.names == ("a", "b")
    assert schema.n_features == {"a": 2, "b": 3}
    assert matched(schema, {"b": B, "a": A}).names == ("a", "b")
    assert matched(schema, [A, B]).names == ("a", "b")  # a list has no names: the order counts


@pytest.mark.parametrize(
    ("views", "message"),
    [
        ({"a": A}, "KSC was fitted on the views a, b; missing: b; give the same views"),
        ({"a": A, "c": B}, "missing: b; unknown: c"),
        ({"a": A, "b": A}, "view 'b' has 2 columns, but it had 3 when KSC was fitted"),
        ([A], "missing: a, b; unknown: view0"),
    ],
)
def test_other_views_are_refused(views, message):
    with pytest.raises(InputError, match=message):
        matched(learnt({"a": A, "b": B}), views)


def test_views_that_samples_may_lack_need_not_be_given():
    views = matched(learnt({"a": A, "b": B}, may_lack_views=True), {"b": B})
    assert views.names == ("a", "b")
    assert (views.n_present("a"), views.n_present("b")) == (0, 6)


def test_other_columns_are_refused():
    schema = learnt({"a": pd.DataFrame(A, columns=["age", "height"]), "b": B})
    with pytest.raises(InputError, match="view 'a' has the column 'size' where 'height' was when KSC was fitted"):
        matched(schema, {"a": pd.DataFrame(A, columns=["age", "size"]), "b": B})
    assert matched(schema, {"a": A, "b": B}).names == ("a", "b")  # arrays have no names of columns


def test_categories_are_encoded_as_in_the_training_views():
    colours = pd.DataFrame({"colour": pd.Categorical(["red", "blue"] * 3)})
    schema, views = Schema.learn(as_views({"a": colours, "b": B}), nothing, may_lack_views=False)
    assert schema.n_features == {"a": 2, "b": 3}
    np.testing.assert_array_equal(matched(schema, {"a": colours[:1], "b": B[:1]})["a"], views["a"][:1])
    with pytest.raises(
        InputError, match="view 'b' has categories in the column 'colour', but KSC was fitted on number"
    ):
        matched(schema, {"a": colours, "b": colours})
