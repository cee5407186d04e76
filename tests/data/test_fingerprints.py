"""Tables that look like others: a cached one is used for the same cells alone."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from branchwise import C45Classifier, CARTClassifier, ID3Classifier
from branchwise.data import cache
from branchwise.data.cache import Fingerprints
from branchwise.data.encoded_table import EncodedTable
from branchwise.native import extension
from branchwise.tree.tree import Tree

KERNELS = {"native": extension().Fingerprint, "reference": cache._Fingerprint}


def chunked(*texts):
    """Return an Arrow array with a chunk for each list."""
    kind = pa.large_string()
    return pa.chunked_array([pa.array(chunk, kind) for chunk in texts], kind)


@pytest.mark.parametrize("kernel", KERNELS)
def test_bytes_are_compared_where_samples_are_the_same(kernel):
    read = KERNELS[kernel]
    one = np.arange(3000.0)
    other = one.copy()
    other[77] += 1  # which is not among the bytes that are sampled
    first, second = read([one]), read([other])
    if kernel == "native":
        assert first.sampled() == second.sampled()
    assert not first.equals(second)
    assert first.sampled() != read([one, one]).sampled()
    assert read([one]).equals(read([one.copy()]))
    assert first.n_bytes == one.nbytes
    for changed in ([one[:-1]], [one, one], [], [one[:1500], one[1500:]]):
        assert not read([one]).equals(read(changed))


def test_every_byte_of_small_arrays_is_sampled():
    """Otherwise labels of folds, which are often alike, replace each other."""
    read = KERNELS["native"]
    for size in (1, 7, 8, 31, 32, 33, 100, 4096):
        labels = np.zeros(size, np.uint8)
        samples = {read([labels]).sampled()}
        for at in range(size):
            changed = labels.copy()
            changed[at] = 1
            samples.add(read([changed]).sampled())
        assert len(samples) == size + 1


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_copy_stays_as_it_was(kernel):
    read = KERNELS[kernel]
    numbers, texts = np.arange(100), chunked(["a", None, "b"], [], ["cc"])
    kept = read([numbers, texts]).copied()
    assert kept.equals(read([numbers.copy(), chunked(["a", None, "b"], [], ["cc"])]))
    assert kept.sampled() == read([numbers, texts]).sampled()
    assert kept.copied().equals(kept)
    numbers[50] = 7
    assert not kept.equals(read([numbers, texts]))


@pytest.mark.parametrize("kernel", KERNELS)
def test_chunks_and_missing_values_count(kernel):
    read = KERNELS[kernel]
    texts = chunked(["a", "b", "a", "b"])
    same = read([chunked(["a", "b", "a", "b"])])
    assert read([texts]).equals(same)
    for other in (
        chunked(["a", "b"], ["a", "b"]),
        chunked(["a", "b", None, "b"]),
        chunked(["a", "b", "a", "c"]),
        texts.slice(1),
        texts.slice(0, 3),
        chunked(),
    ):
        assert not read([other]).equals(same)
        assert read([other]).equals(read([other]))


def test_what_is_no_memory_is_refused():
    read = extension().Fingerprint
    for wrong in ([3], ["text"], [None], [np.arange(9)[::2]], [np.eye(3)[:, :2]]):
        with pytest.raises(TypeError, match="arrays must"):
            read(wrong)
    with pytest.raises(TypeError, match="incompatible"):
        read([np.arange(3)]).equals(None)


def last_of_three(recognition, table):
    """Pass a table several times."""
    return [recognition.known_table(table) for _ in range(3)][-1]


def cells_of(table):
    return [column.values.tolist() for column in table.columns]


@pytest.mark.parametrize("kernel", KERNELS)
def test_columns_that_share_an_array_are_told_apart(kernel, monkeypatch):
    """The same bytes under the same names, in other columns or by columns."""
    monkeypatch.setenv("BRANCHWISE_KERNEL", kernel)
    recognition = Fingerprints()
    a, b = np.arange(200.0), np.arange(200.0)[::-1].copy()
    whole = np.arange(200) % 7
    wide = np.stack([a, b])
    tables = [
        pd.DataFrame({"x": a, "y": b, "z": whole}),
        pd.DataFrame({"x": a, "y": whole, "z": b}),
        pd.DataFrame({"x": whole, "y": a, "z": b}),
        pd.DataFrame({"x": b, "y": a, "z": whole}),
        pd.DataFrame(wide.T, columns=["x", "y"]),  # rows of an array in order "F"
        pd.DataFrame(wide.T.copy(), columns=["x", "y"]),
        pd.DataFrame(wide.reshape(-1, 2), columns=["x", "y"]),
    ]
    for _ in range(2):
        for table in tables:
            kept = last_of_three(recognition, table)
            assert isinstance(kept, EncodedTable)
            assert cells_of(kept) == [table[name].tolist() for name in table]


@pytest.mark.parametrize("order", ["C", "F"])
def test_shared_arrays_that_change_are_read_again(order):
    recognition = Fingerprints()
    numbers = np.asarray(np.arange(600.0).reshape(200, 3), order=order)
    for table in (numbers, pd.DataFrame(numbers, copy=False), numbers[::2]):
        for row in (0, 64, 99):
            last_of_three(recognition, table)
            if isinstance(table, np.ndarray):
                table[row, 1] += 1000
            else:
                table.iloc[row, 1] += 1000
            kept = last_of_three(recognition, table)
            assert cells_of(kept) == np.asarray(table).T.tolist()


def test_texts_with_a_dictionary_are_not_kept(monkeypatch):
    """Their buffers do not have the texts."""
    texts = pd.array(np.tile(["a", "b"], 50), dtype="string[pyarrow]")
    codes = pa.chunked_array([texts.__arrow_array__().dictionary_encode().chunk(0)])
    assert cache._plain(texts)[0] in ("string", "large_string")
    monkeypatch.setattr(type(texts), "__arrow_array__", lambda *_: codes)
    assert cache._plain(texts)[0] is None


# What models share


def fitted(estimator, n_times=4, seed=0):
    """Fit clones to the same rows, so that trees come from the cache."""
    random = np.random.default_rng(seed)
    X = pd.DataFrame({name: random.choice(list("abcd"), 400) for name in "uvwxyz"})
    score = (X == "a").sum(axis=1) + (X["u"] == X["v"]) * 2 + random.random(400)
    y = np.where(score > 2.4, "yes", "no")
    return X, y, [estimator.__sklearn_clone__().fit(X, y) for _ in range(n_times)]


@pytest.mark.parametrize("kind", [ID3Classifier, C45Classifier, CARTClassifier])
def test_models_of_a_tree_share_it_and_nothing_else(kind):
    X, y, models = fitted(kind())
    alone = kind().fit(X.to_dict("list"), y)
    assert models[-1].model_.tree is models[-2].model_.tree
    for model in models:
        assert model.model_.tree == alone.model_.tree
        assert list(model.predict(X)) == list(alone.predict(X))
    walks = {id(model.model_.walker.native) for model in models[-2:]}
    assert len(walks) == 1
    models[-2].classes_[0] = "xx"
    assert models[-1].classes_.tolist() == ["no", "yes"]
    assert set(models[-1].predict(X)) == set(models[-2].predict(X)) == {"no", "yes"}


def test_a_shared_tree_is_pickled_without_its_walk():
    X, _, models = fitted(ID3Classifier())
    again = pickle.loads(pickle.dumps(models[-1]))
    assert set(vars(again.model_.tree)) == set(Tree.__dataclass_fields__)
    assert list(again.predict(X)) == list(models[-1].predict(X))
    assert again.model_ == models[-1].model_


@pytest.mark.parametrize(
    "settings",
    [
        {"confidence": 0.1},
        {"confidence": 0.4, "raise_subtrees": False},
        {"prune": False},
        {"pruning": "cost-complexity", "ccp_alpha": 0.01},
        {"max_leaf_nodes": 7},
    ],
    ids=str,
)
def test_pruned_trees_of_other_limits_are_those_that_are_grown(settings):
    random = np.random.default_rng(1)
    X, y, _ = fitted(C45Classifier(), 1)
    limits = [{"max_depth": depth} for depth in (2, 30, 8, None, 1, 40)]
    limits += [{"min_samples_split": cases} for cases in (2, 3, 50)]
    for _ in range(3):
        for limit in random.permutation(limits):
            model = C45Classifier(**settings, **limit).fit(X, y)
            alone = C45Classifier(**settings, **limit).fit(X.to_dict("list"), y)
            assert model.model_.tree == alone.model_.tree
            assert model.recipe == alone.recipe
            fresh = Tree(**model.model_.tree.__getstate__())
            assert model.model_.tree.label.tolist() == fresh.label.tolist()
