from __future__ import annotations

import numpy as np
import pytest

from corank.data.column_roles import USUAL_NAMES, ColumnChoice
from corank.errors import InputError

TABLE = ["label", "qid", "docid", "f1", "f2"]


def roles_of(names, **choice):
    return ColumnChoice(**choice).roles(names, "t.csv")


@pytest.mark.parametrize(("role", "name"), [(role, name) for role, names in USUAL_NAMES.items() for name in names])
@pytest.mark.parametrize("spelt", [str, str.upper, str.title, lambda name: f" {name.replace('_', '-')}"])
def test_usual_names_are_recognised_however_they_are_spelt(role, name, spelt):
    roles = roles_of([spelt(name), "f1"], **({} if role == "y" else {"y": False}))
    assert getattr(roles, role) == spelt(name)
    assert roles.features == ("f1",)


def test_other_names_are_features():
    assert roles_of([*TABLE, "queries", "ids", "label2", "yes"]).features == (
        "f1",
        "f2",
        "queries",
        "ids",
        "label2",
        "yes",
    )


def test_roles_in_words():
    assert str(roles_of([*TABLE, "url"], drop=["f2"])) == (
        "label 'label', query 'qid', document 'docid', 1 feature 'f1'; left out 'f2', 'url'"
    )


@pytest.mark.parametrize(
    ("extra", "choice", "message"),
    [
        (["rating"], {}, r"'label', 'rating', which look like labels; choose one with y= .* keep="),
        (["rating"], {"y": False}, "which look like labels"),
        (["query"], {}, "'qid', 'query', which look like query ids; choose one with qid="),
        (["judge", "user"], {}, "'judge', 'user', which look like judges; choose one with judge="),
        (["Label"], {}, "'label', 'Label', which look like labels"),
        ([], {"y": "lable"}, "no column 'lable'; did you mean 'label'[?] Choose one of 'label', .* with y="),
        ([], {"drop": ["f3"]}, "no column 'f3'; .* with drop="),
        ([], {"keep": ["f3"]}, "no column 'f3'; .* with keep="),
        (["f1"], {}, "two columns named 'f1'"),
        ([], {"drop": ["label"]}, "has no label column"),
    ],
)
def test_what_is_not_clear_is_refused(extra, choice, message):
    with pytest.raises(InputError, match=message):
        roles_of([*TABLE, *extra], **choice)


def test_the_other_columns_of_a_chosen_role_are_left_out():
    roles = roles_of([*TABLE, "rating", "query"], y="rating", qid="query")
    assert (roles.y, roles.qid, roles.features, roles.left_out) == ("rating", "query", ("f1", "f2"), ("label", "qid"))


def test_a_kept_column_is_a_feature():
    roles = roles_of([*TABLE, "rating"], keep=["rating"])
    assert (roles.y, roles.features) == ("label", ("f1", "f2", "rating"))
    # the features of a model need not be kept again
    assert roles_of([*TABLE, "rating"], features=["rating", "f2", "f1"]).features == ("rating", "f2", "f1")


def test_query_columns_are_left_out_if_all_rows_are_one_query():
    roles = roles_of([*TABLE, "session_id"], qid=False)
    assert (roles.qid, roles.features, roles.left_out) == (None, ("f1", "f2"), ("qid", "session_id"))


def test_features_are_reordered_by_name():
    assert not roles_of(TABLE, features=["f1", "f2"]).is_reordered
    roles = roles_of(TABLE, features=["f2", "f1"])
    assert roles.features == ("f2", "f1")
    assert roles.is_reordered


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (["f1"], "has 'f2', which the model was not fitted on; name them with y=, qid= or docid=, or leave .* drop="),
        (["f1", "f2", "f3"], "lacks 'f3', which the model was fitted on; pass a table with the columns of the model"),
        (["f1", "g"], "lacks 'g', which the model was fitted on, and has 'f2', which the model was not fitted on"),
        ([f"g{k}" for k in range(9)], r"lacks 'g0', 'g1', 'g2', \.\.\., 'g6', 'g7', 'g8' \(9 in all\), which"),
    ],
)
def test_other_features_are_refused_by_name(features, message):
    with pytest.raises(InputError, match=message):
        roles_of(TABLE, features=features)


@pytest.mark.parametrize("name", ["", " ", "Unnamed: 0", "__index_level_0__"])
def test_columns_without_a_name_are_left_out_unless_they_are_kept(name):
    roles = roles_of([name, *TABLE])
    assert (roles.features, roles.left_out) == (("f1", "f2"), (name,))
    assert roles_of([name, *TABLE], keep=[name]).features == (name, "f1", "f2")
    assert roles_of([name, *TABLE], features=["f1", name, "f2"]).features == ("f1", name, "f2")


def test_features_may_be_an_array_of_names():
    assert roles_of(TABLE, features=np.array(["f2", "f1"], dtype=object)).is_reordered
