"""Spark DataFrames give the model that tables in memory give, faults or none."""

from __future__ import annotations

import datetime as dt
import decimal
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from branchwise import DataError, ParameterError, datasets, fit_tree
from branchwise.engines.level_engine import received, sent
from branchwise.engines.spark import SparkTable, cluster
from branchwise.engines.spark import source as engine
from branchwise.engines.spark import workers as spark_workers
from branchwise.predict import predict_rows
from branchwise.recipe import C45, CART, ID3
from engine_tables import RECIPES, random_table
from forest_cases import CASES as ENSEMBLES
from forest_cases import columns_of, fitted, table_of
from marked_files import models_of_marked_files
from selection import first_fast
from spark_sessions import local_spark

pytestmark = [
    pytest.mark.xdist_group("spark"),
    # Tests hand tables of pandas to PySpark; branchwise does not.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]


@pytest.fixture(scope="module")
def spark():
    with local_spark() as session:
        yield session


@pytest.fixture(autouse=True)
def nothing_left(request):
    yield
    if "spark" not in request.fixturenames:
        return
    spark = request.getfixturevalue("spark")
    context = spark.sparkContext._jsc.sc()
    assert context.getPersistentRDDs().size() == 0
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty()
    assert not spark.sparkContext.getJobTags()


def frame_of(spark, table: pd.DataFrame, n_partitions: int):
    frame = spark.createDataFrame(table.astype(object).where(table.notna(), None))
    for name, dtype in table.dtypes.items():
        if dtype.kind in "if":
            frame = frame.withColumn(name, frame[name].cast("double"))
    return frame.repartition(n_partitions)


def same_model(spark, table, recipe, n_partitions, most_rows=500_000, **how):
    frame = frame_of(spark, table, n_partitions)
    found = fit_tree(SparkTable(frame, most_rows), "y", recipe, **how)
    expected = fit_tree(table, "y", recipe, **how)
    assert found.to_bytes() == expected.to_bytes()


CASES = [(name, seed) for seed in range(6) for name in RECIPES]
CASES.sort(key=lambda case: (case[1], case[0] not in ("id3", "c4.5", "surrogates")))


@pytest.mark.parametrize("case", first_fast(CASES, n_fast=2), ids=str)
def test_partitions_give_the_tree_of_the_whole(spark, case):
    name, seed = case
    rng = np.random.default_rng(seed)
    table = random_table(rng)
    recipe = replace(RECIPES[name], max_depth=4)
    if recipe.is_regression:
        table["y"] = rng.normal(size=len(table))
    how = {"sample_weight": "w"} if rng.random() < 0.5 else {"ignore": ["w"]}
    n_partitions = int(rng.integers(1, 4))
    most_rows = int(rng.choice([0, 40, 10**6]))
    same_model(spark, table, recipe, n_partitions, most_rows, **how)


@pytest.mark.parametrize("recipe", [ID3, C45], ids=["id3", "c4.5"])
@pytest.mark.parametrize("name", first_fast(datasets.names(), n_fast=0))
def test_bundled_tables(spark, recipe, name):
    table = datasets.load(name)
    columns = pd.DataFrame(table.X)
    same_model(spark, columns.assign(y=[str(label) for label in table.y]), recipe, 2)


@pytest.mark.slow
def test_many_partitions_are_merged_by_the_workers(spark, monkeypatch):
    monkeypatch.setattr(cluster, "FAN_IN", 2)
    table = random_table(np.random.default_rng(3)).drop(columns="w")
    collected = []
    collect = cluster.Session.collected

    def counting(self, frame):
        rows = collect(self, frame)
        collected.append(len({row.source for row in rows}))
        return rows

    monkeypatch.setattr(cluster.Session, "collected", counting)
    same_model(spark, table, replace(ID3, max_depth=2), 5, most_rows=0)
    assert collected[0] == 5  # how many partitions there are
    assert max(collected[1:]) <= 2


@pytest.mark.parametrize("case", first_fast(list(ENSEMBLES), n_fast=1))
def test_ensembles_are_those_of_tables_in_memory(spark, case):
    table = columns_of(case, table_of())
    found = fitted(case, frame_of(spark, table, 3)).model_.to_bytes()
    assert found == fitted(case, table).model_.to_bytes()


@pytest.mark.slow
def test_a_criterion_of_the_user_reaches_the_workers(spark):
    from branchwise import RandomForestClassifier

    def accuracy(parent, branches):
        right = branches.max(axis=2).sum(axis=1)
        return (right - parent.max(axis=1)) / parent.sum(axis=1)

    table = columns_of("forest", table_of(100)).dropna()
    estimator = RandomForestClassifier(n_estimators=2, criterion=accuracy)
    found = estimator.fit(frame_of(spark, table, 2), "bought").model_.trees
    assert found == estimator.fit(table, "bought").model_.trees


def test_estimators_take_frames(spark):
    from branchwise import C45Classifier

    table = random_table(np.random.default_rng(4)).drop(columns="w")
    far = C45Classifier().fit(frame_of(spark, table, 2), "y")
    near = C45Classifier().fit(table.drop(columns="y"), table["y"])
    assert far.tree_ == near.tree_


@pytest.mark.slow
@pytest.mark.parametrize(
    "recipe", [CART, replace(ID3, missing="largest")], ids=["cart", "id3"]
)
def test_other_rows_to_prune_with(spark, recipe):
    table = random_table(np.random.default_rng(5)).drop(columns="w")
    half = len(table) // 2
    grown, other = table.iloc[:half], table.iloc[half:]
    recipe = replace(recipe, pruning="reduced-error")
    frames = [frame_of(spark, rows, 2) for rows in (grown, other)]
    found = fit_tree(frames[0], "y", recipe, validation=frames[1])
    near = fit_tree(grown, "y", recipe, validation=other)
    assert found.to_bytes() == near.to_bytes()


def test_the_command_line_reads_files_as_ever(spark, tmp_path):
    one, other = models_of_marked_files(tmp_path, "spark", "--master", "local[2]")
    assert one == other
    with pytest.raises(DataError, match=r"'spark' reads Parquet files\. Got 'a\.csv'"):
        SparkTable.frame_of(["a.csv"], ["x"], ())


# ---- types and names ----------------------------------------------------------------


@pytest.mark.slow
def test_types_are_those_of_arrow(spark):
    n = 40
    rows = [
        (
            ["a", None, "b"][at % 3],
            [True, False, None][at % 3],
            at % 5,
            at % 7,
            None if at % 4 else at,
            float("nan") if at % 6 == 0 else at / 8,
            at % 2 + 0.5,
            decimal.Decimal(at) / 4,
            None,
            ["no", "yes"][at * at % 7 % 2],
        )
        for at in range(n)
    ]
    schema = (
        "`a text` string, `it's` boolean, `b.y` byte, short short, `a``b` long, "
        "d double, f float, decimal decimal(10, 2), nothing void, y string"
    )
    frame = spark.createDataFrame(rows, schema).repartition(2)
    model = fit_tree(frame, "y", replace(CART, missing="surrogate"))
    near = fit_tree(frame.toArrow(), "y", replace(CART, missing="surrogate"))
    assert model.to_bytes() == near.to_bytes()


@pytest.mark.slow
def test_dates(spark):
    days = [dt.date(2024, 1, 1), None, dt.date(2024, 2, 1), dt.date(2024, 1, 9)]
    times = [dt.datetime(2024, 1, 1 + at, 7, 30) for at in range(4)]
    rows = list(zip(days, times, "abba", strict=True))
    schema = "day date, time timestamp_ntz, y string"
    model = fit_tree(spark.createDataFrame(rows, schema), "y", CART)
    near = fit_tree({"day": days, "time": times, "y": list("abba")}, "y", CART)
    assert model.to_bytes() == near.to_bytes()


@pytest.mark.slow
def test_names_may_differ_in_case_alone(spark):
    frame = spark.createDataFrame(
        [("a", "b", "n"), ("b", "b", "p")], "x string, X string, y string"
    )
    model = fit_tree(frame, "y")
    assert [column.name for column in model.schema.columns] == ["x", "X"]


@pytest.mark.parametrize(
    ("rows", "schema", "complaint"),
    [
        ([], "x string, y string", "no rows"),
        ([("a",)], "y string", "no attributes"),
        ([("a",)], "x string", "has no column 'y'"),
        ([([1], "a")], "x array<int>, y string", "'x' holds nested values"),
        ([(b"1", "a")], "x binary, y string", "'x' holds bytes"),
        ([(2**60, "a")], "x long, y string", r"'x' has the integer .* beyond 2\*\*53"),
        ([("a", None)], "x string, y string", "y"),
        ([("a", "b", "c")], "x string, x string, y string", "more than one column"),
    ],
)
def test_what_is_wrong_is_said_as_in_memory(spark, rows, schema, complaint):
    with pytest.raises(DataError, match=complaint):
        fit_tree(spark.createDataFrame(rows, schema), "y")


@pytest.mark.slow
def test_streams_are_refused(spark):
    with pytest.raises(DataError, match="is a stream"):
        fit_tree(spark.readStream.format("rate").load(), "value")


def test_the_limit_of_rows_is_checked(spark):
    with pytest.raises(ParameterError, match="most_rows"):
        SparkTable(spark.range(1), most_rows=-1)


# ---- faults ------------------------------------------------------------------------


def failing(marker: Path, times: int, how):
    """Return what lets the rows of a frame fail some times, then pass."""

    def passing(batches):
        for batch in batches:
            with marker.open("a") as file:
                file.write("x")
            if marker.stat().st_size <= times:
                how()
            yield batch

    return passing


def cannot() -> None:
    raise ValueError("the cell in row 7 is broken")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("how", first_fast([cannot, die]))
def test_a_partition_that_fails_once_counts_once(spark, tmp_path, how):
    table = random_table(np.random.default_rng(6)).drop(columns="w")
    frame = frame_of(spark, table, 1)
    often = failing(tmp_path / "tries", 1, how)
    model = fit_tree(frame.mapInArrow(often, frame.schema), "y")
    assert model.to_bytes() == fit_tree(table, "y").to_bytes()
    assert (tmp_path / "tries").stat().st_size > 1


def test_the_table_is_read_once(spark, tmp_path):
    table = random_table(np.random.default_rng(6)).drop(columns="w")
    frame = frame_of(spark, table, 1)
    counting = failing(tmp_path / "tries", 0, cannot)
    recipe = replace(ID3, max_depth=3)
    with SparkTable(frame.mapInArrow(counting, frame.schema), 0) as place:
        model = fit_tree(place, "y", recipe)
    assert model.to_bytes() == fit_tree(table, "y", recipe).to_bytes()
    assert model.tree.max_depth == 3
    assert (tmp_path / "tries").stat().st_size == 1


@pytest.mark.slow
def test_rows_as_they_were_read_are_given_up(spark):
    from branchwise.engines.base import Task

    table = random_table(np.random.default_rng(6)).drop(columns="w")
    kept = spark.sparkContext._jsc.sc()
    with SparkTable(frame_of(spark, table, 2)) as place:
        passes = place.engine(place.learn(Task("y")))
        assert kept.getPersistentRDDs().size() == 1
        passes.totals()
        assert kept.getPersistentRDDs().size() == 1


class _KilledOnce:
    """A job during which the worker dies once."""

    def __init__(self, job, marker: Path) -> None:
        self.job, self.marker = job, marker

    def __call__(self, part):
        if not self.marker.exists():
            self.marker.touch()
            die()
        return self.job(part)


@pytest.mark.slow
def test_a_worker_that_dies_in_a_pass_counts_once(spark, tmp_path, monkeypatch):
    marker = tmp_path / "killed"
    send = engine.sent
    monkeypatch.setattr(
        engine,
        "sent",
        lambda job, plan: send(
            _KilledOnce(job, marker) if callable(job) else job, plan
        ),
    )
    table = random_table(np.random.default_rng(7)).drop(columns="w")
    same_model(spark, table, replace(ID3, max_depth=3), 2, most_rows=0)
    assert marker.exists()


def test_a_partition_that_always_fails_is_told_in_a_line(spark, tmp_path):
    frame = spark.createDataFrame([("a", "b")], "x string, y string")
    always = failing(tmp_path / "tries", 99, cannot)
    with pytest.raises(DataError) as caught:
        fit_tree(frame.mapInArrow(always, frame.schema), "y")
    message = str(caught.value)
    assert message.endswith("ValueError: the cell in row 7 is broken")
    assert "\n" not in message
    assert caught.value.__suppress_context__


@pytest.mark.slow
def test_errors_of_spark_itself_are_told_in_a_line(spark):
    frame = spark.createDataFrame([("a", "b")], "x string, y string")
    with pytest.raises(DataError, match=r"CAST_INVALID_INPUT.*'a'") as caught:
        fit_tree(frame.withColumn("x", frame["x"].cast("int")), "y")
    assert len(str(caught.value)) < 700


def test_a_table_that_changes_is_refused(spark, tmp_path):
    path = str(tmp_path / "table")
    table = random_table(np.random.default_rng(8)).drop(columns="w")
    frame_of(spark, table, 2).write.parquet(path)
    with SparkTable(spark.read.parquet(path)) as place:
        from branchwise.engines.base import Task

        plan = place.learn(Task("y"))
        passes = place.engine(replace(plan, n_rows=plan.n_rows + 1))
        with pytest.raises(DataError, match=r"changed while the tree was grown.*rows"):
            passes.totals()


@pytest.mark.slow
def test_ctrl_c_cancels_the_work(spark):
    def slow(batches):
        time.sleep(60)
        yield from batches

    frame = spark.createDataFrame([("a", "b")], "x string, y string")
    frame = frame.mapInArrow(slow, frame.schema)
    status = spark.sparkContext.statusTracker()

    def interrupt():
        while not status.getActiveStageIds():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        fit_tree(frame, "y")
    for _ in range(400):
        if not status.getActiveStageIds():
            return
        time.sleep(0.05)
    raise AssertionError("the work goes on")


# ---- answers -----------------------------------------------------------------------


def test_answers_are_those_of_memory(spark):
    table = random_table(np.random.default_rng(20)).drop(columns="w")
    model = fit_tree(table, "y", C45)
    assert 0 < len(model.tree.used_columns) < len(model.schema.columns)
    frame = frame_of(spark, table, 3)
    names = table.columns.tolist()

    def answered(what):
        found = predict_rows(model, frame, what, keep=True).toArrow()
        assert found.column_names[: len(names)] == names
        assert len(found) == len(table)
        return found.select(names), found.drop_columns(names).to_pydict()

    X, added = answered("classes")
    assert added == {"prediction": model.predict(X).tolist()}
    X, added = answered("leaves")
    assert added == {"leaf": model.apply(X).tolist()}
    X, added = answered("probabilities")
    assert list(added) == [f"probability of {name}" for name in model.schema.classes]
    assert list(added.values()) == model.predict_proba(X).T.tolist()
    # Columns that the tree does not split on may be absent.
    used = [model.schema.names[at] for at in model.used_columns]
    fewer = predict_rows(model, frame.select(used), keep=True).toArrow()
    assert fewer["prediction"].to_pylist() == model.predict(fewer).tolist()


def test_answers_for_odd_names(spark):
    table = pd.DataFrame({"a.b": ["x", "z"] * 4, "c`d": range(8), "y": ["n", "p"] * 4})
    frame = spark.createDataFrame(table)
    model = fit_tree(frame, "y")
    for what in ("classes", "probabilities", "leaves"):
        answered = predict_rows(model, frame, what, keep=True)
        assert answered.columns[:3] == ["a.b", "c`d", "y"]
        assert answered.count() == 8
    rows = predict_rows(model, frame, keep=True).collect()
    assert [row["prediction"] for row in rows] == [row["y"] for row in rows]


@pytest.mark.slow
def test_numbers_and_trees_that_ask_nothing(spark):
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [1.5, 2.5, 3.5]})
    recipe = replace(CART, criterion="variance", max_depth=0)
    model = fit_tree(table, "y", recipe)
    frame = spark.createDataFrame(table)
    rows = predict_rows(model, frame, keep=True).collect()
    assert [row.prediction for row in rows] == [2.5] * 3
    with pytest.raises(ParameterError, match="predicts numbers"):
        predict_rows(model, frame, "probabilities", keep=True)


def test_answers_that_cannot_be_had(spark):
    table = pd.DataFrame({"x": ["a", "b"], "y": ["n", "p"]})
    model = fit_tree(table, "y")
    with pytest.raises(DataError, match="lacks 'x'"):
        predict_rows(model, spark.createDataFrame([("a",)], "z string"), keep=True)
    with pytest.raises(DataError, match="two columns 'prediction'"):
        predict_rows(
            model,
            spark.createDataFrame([("a", 1)], "x string, prediction int"),
            keep=True,
        )
    with pytest.raises(ParameterError, match="what must be one or more of"):
        predict_rows(model, spark.createDataFrame(table), "class", keep=True)


# ---- what travels ------------------------------------------------------------------


def test_a_plan_that_is_known_does_not_travel():
    from branchwise.engines.base import Task
    from branchwise.engines.chunk import Route
    from listed_source import ListedPlace

    table = random_table(np.random.default_rng(2))
    plan = ListedPlace([table]).learn(Task("y"))
    data = sent(Route(plan), plan)
    assert received(data, plan).plan is plan
    assert len(data) < 300


def test_pages_bring_back_what_was_cut(monkeypatch):
    monkeypatch.setattr(spark_workers, "PAGE", 7)
    things = [(at % 2, list(range(at))) for at in range(30)]
    batches = list(
        spark_workers.pages(3, ((b, spark_workers.serialised(t)) for b, t in things))
    )
    assert list(spark_workers.deserialised(batches)) == things
    numbers = [n for batch in batches for n in batch.column("page").to_pylist()]
    assert numbers == list(range(len(numbers)))


def test_rows_are_taken_together_up_to_a_size(monkeypatch):
    import pyarrow as pa

    monkeypatch.setattr(spark_workers, "BLOCK_ROWS", 10)
    batches = [pa.record_batch({"x": [1] * n}) for n in (4, 0, 4, 4, 20, 1)]
    blocks = spark_workers._blocks(batches)
    assert [block.num_rows for block in blocks] == [12, 20, 1]
