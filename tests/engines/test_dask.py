"""A Dask table gives the tree that its rows give in memory, whatever goes wrong."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from branchwise import (
    BranchwiseError,
    C45Classifier,
    DataError,
    ParameterError,
    datasets,
    fit_tree,
    load,
)
from branchwise.cli.main import app
from branchwise.engines.base import Task
from branchwise.engines.chunk import Chunk, Route
from branchwise.engines.level_engine import CountColumns
from branchwise.model import Model
from branchwise.recipe import C45, CART, ID3, Recipe
from branchwise.train.engine_growth import grown_by_engine
from branchwise.train.train import task_of
from engine_tables import RECIPES, in_parts, random_table
from marked_files import models_of_marked_files
from partitions import faulty, moody, slow
from selection import first_fast

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

from branchwise.engines.dask import source as dask_source  # noqa: E402
from branchwise.engines.dask.cluster import ClientExecutor, LocalExecutor, executor_of  # noqa: E402
from branchwise.engines.dask.source import DaskPartitions, DaskTable  # noqa: E402
from branchwise.engines.dask.workers import (  # noqa: E402
    Fingerprint,
    Rejected,
    WorkerPlan,
    done,
    encoded,
    held,
)
from branchwise.predict import predict_rows  # noqa: E402

# One cluster is enough for a machine.
pytestmark = pytest.mark.xdist_group("dask")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0"
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    """A client that, when a test is done, must have been left nothing."""
    with distributed.Client(cluster) as client:
        yield client
        # Neither here nor at the scheduler, which hears of it a little later.
        deadline = time.monotonic() + 20
        while left_over(client) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert left_over(client) == []


def left_over(client: Any) -> list[Any]:
    there = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))
    return [*client.futures, *there]


def as_dask(parts: list[pd.DataFrame]) -> Any:
    return dd.from_map(lambda part: part, parts, meta=parts[0].iloc[:0])


def of_table(place: DaskTable, recipe: Recipe, **how: Any) -> Model:
    target = "y" if place.target is None else place.target
    return fit_tree(place, target, recipe, **{"ignore": ["w"], **how})


def in_memory(table: pd.DataFrame, recipe: Recipe, **how: Any) -> Model:
    return fit_tree(table.drop(columns=["y", "w"]), table["y"], recipe, **how)


def some_table(n: int = 400, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    cells = {f"c{j}": rng.integers(0, 3, n).astype(str) for j in range(4)}
    table = pd.DataFrame({name: "v" + pd.Series(c) for name, c in cells.items()})
    table["y"] = np.where(rng.random(n) < 0.8, table["c0"], table["c1"])
    return table.assign(w=1.0)


UNWEIGHTED = Task("y", None, ("w",))


def pieces(table: pd.DataFrame, n: int) -> list[pd.DataFrame]:
    cuts = np.linspace(0, len(table), n + 1).astype(int).tolist()
    return [table.iloc[begin:end] for begin, end in pairwise(cuts)]


# ---- the same tree ------------------------------------------------------------------


@pytest.mark.parametrize("seed", first_fast(range(6)))
@pytest.mark.parametrize("name", first_fast(reversed(RECIPES), n_fast=2))
def test_random_tables(client, name, seed):
    rng = np.random.default_rng([seed, 7])
    recipe = RECIPES[name]
    table = random_table(rng)
    if recipe.is_regression:
        table["y"] = rng.normal(size=len(table))
    weighted = rng.random() < 0.5
    place = DaskTable(
        as_dask(in_parts(rng, table)),
        client=client,
        most_rows=int(rng.choice([0, 40, 10**6])),
        hold=bool(rng.random() < 0.7),
    )
    model = of_table(place, recipe, sample_weight="w" if weighted else None)
    weights = table["w"] if weighted else None
    expected = in_memory(table, recipe, sample_weight=weights)
    assert model == expected


ON_BUNDLED = {"id3": ID3, "c4.5": C45, "cart": replace(CART, missing="surrogate")}
FIRST = [("labor", "c4.5"), ("golf", "id3"), ("lenses", "cart")]
REST = sorted(set(product(datasets.names(), ON_BUNDLED)) - set(FIRST))


@pytest.mark.parametrize("which", first_fast([*FIRST, *REST]))
def test_bundled_tables_in_any_parts(client, which):
    name, recipe = which
    data = datasets.load(name)
    table = pd.DataFrame(data.X).assign(**{data.target: data.y})
    expected = fit_tree(data.X, data.y, ON_BUNDLED[recipe], target_name=data.target)
    for n, most_rows in ((1, 0), (3, 5)):
        place = DaskTable(as_dask(pieces(table, n)), client=client, most_rows=most_rows)
        model = fit_tree(place, data.target, ON_BUNDLED[recipe])
        assert model == expected


@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_without_a_client(scheduler):
    rng = np.random.default_rng(3)
    table = random_table(rng)
    with dask.config.set(scheduler=scheduler):
        place = DaskTable(as_dask(in_parts(rng, table)), most_rows=40)
        assert isinstance(place._executor, LocalExecutor)
        model = of_table(place, C45, sample_weight="w")
    expected = in_memory(table, C45, sample_weight=table["w"])
    assert model == expected


def test_the_current_client_is_found(client):
    assert isinstance(executor_of(None, 0), ClientExecutor)
    with dask.config.set(scheduler="threads"):
        assert isinstance(executor_of(None, 0), LocalExecutor)
    with pytest.raises(ParameterError, match=r"client must be a distributed\.Client"):
        executor_of("tcp://somewhere:8786", 0)


def test_pruning_with_other_rows(client):
    table, other = some_table(300, 1), some_table(300, 2)
    recipe = replace(ID3, pruning="reduced-error")
    validation = other.drop(columns=["y", "w"]), other["y"]
    place = DaskTable(as_dask(pieces(table, 3)), client=client)
    aside = DaskTable(as_dask(pieces(other, 2)), client=client)
    model = of_table(place, recipe, validation=aside)
    assert model == in_memory(table, recipe, validation=validation)


def test_frames_are_recognised(client):
    table = some_table(90)
    X = as_dask(pieces(table.drop(columns="w"), 3))
    assert fit_tree(X, "y") == in_memory(table, ID3)
    estimator = C45Classifier().fit(X, "y")
    assert estimator.tree_ == in_memory(table, C45).tree


# ---- tables of every kind -----------------------------------------------------------


def kinds(table: pd.DataFrame) -> dict[str, Any]:
    """Return the same rows as different kinds of tables."""
    text = table.astype(dict.fromkeys(["c0", "c1", "c2", "c3", "y"], "string[pyarrow]"))
    objects = table.astype(dict.fromkeys(["c0", "c1", "c2", "c3", "y"], object))
    parts = pieces(objects, 3)
    parts[1] = parts[1].astype({"c0": "category", "c1": "string[pyarrow]"})
    return {
        "empty partitions": as_dask([table[:0], table[:50], table[:0], table[50:]]),
        "types that differ": as_dask(parts[::2] + parts[1:2]),
        "any index": as_dask(pieces(table.set_index(table.index % 7), 3)),
        "text": as_dask(pieces(text, 3)),
        "objects": as_dask(pieces(objects, 3)),
        "one partition": as_dask([table]),
        "from pandas": dd.from_pandas(table, npartitions=3),
        "computed": dd.from_pandas(table, npartitions=2).repartition(npartitions=5),
    }


@pytest.mark.parametrize("kind", first_fast(kinds(some_table(9)), n_fast=3))
def test_tables_of_every_kind(client, kind):
    table = some_table(90)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(dask.config.config, "dataframe", {"convert-string": False})
        X = kinds(table)[kind]
        model = of_table(DaskTable(X, client=client), ID3)
    assert model == in_memory(table, ID3)


@pytest.mark.parametrize("known", [True, False])
def test_categories_keep_their_order(client, known):
    table = some_table(60)
    for name in ("c0", "c1", "y"):
        values = ["v2", "v0", "v1", "v7"]
        table[name] = pd.Categorical(table[name], values, ordered=name == "c1")
    X = dd.from_pandas(table, npartitions=3)
    if not known:
        X["c0"] = X["c0"].cat.as_unknown()
    model = of_table(DaskTable(X, client=client), ID3)
    assert model == in_memory(table, ID3)
    assert model.schema.columns[0].categories == ("v2", "v0", "v1", "v7")


def test_nullable_numbers_and_gaps(client):
    rng = np.random.default_rng(0)
    table = some_table(120)
    table["whole"] = pd.array(rng.integers(0, 9, 120), dtype="Int64")
    table.loc[rng.random(120) < 0.2, ["whole", "c0"]] = None
    X = as_dask(pieces(table, 4))
    for recipe in (C45, replace(CART, missing="learned")):
        model = of_table(DaskTable(X, client=client), recipe)
        assert model == in_memory(table, recipe)


def test_files_are_read_once_and_only_what_is_needed(client, tmp_path):
    table = some_table(90)
    for at, part in enumerate(pieces(table, 3)):
        part.to_parquet(tmp_path / f"{at}.parquet")
        part.to_csv(tmp_path / f"{at}.csv", index=False)
    expected = in_memory(table, ID3)
    for X in (dd.read_parquet(tmp_path), dd.read_csv(tmp_path / "*.csv")):
        assert of_table(DaskTable(X, client=client), ID3) == expected
    X = dd.read_parquet(tmp_path)
    place = DaskTable(X, client=client)
    assert "w" not in place._table.delayed(frozenset("w"))[0].compute().names


def test_the_command_line(cluster, tmp_path):
    table = some_table(90).drop(columns="w")
    for at, part in enumerate(pieces(table, 3)):
        part.to_parquet(tmp_path / f"{at}.parquet")
    table.to_csv(tmp_path / "table.csv", index=False)
    fit = [
        "fit",
        "-a",
        "id3",
        str(tmp_path / "*.parquet"),
        "-t",
        "y",
        "--engine",
        "dask",
    ]
    expected = in_memory(table.assign(w=1), ID3)
    for further in ([], ["--scheduler", cluster.scheduler_address]):
        out = tmp_path / "tree.json"
        done = CliRunner().invoke(app, [*fit, *further, "-o", str(out)])
        assert done.exit_code == 0, done.output
        assert load(out) == expected
        out.unlink()
    distributed.default_client().close()
    nobody = CliRunner().invoke(app, [*fit, "--scheduler", "nowhere://1"])
    assert nobody.exit_code == 2
    assert "There is no Dask scheduler at 'nowhere://1'" in nobody.output
    # Whoever could not be reached is not asked next time.
    assert isinstance(executor_of(None, 0), LocalExecutor)
    with pytest.raises(DataError, match=r"reads Parquet files\. Got .*table\.csv"):
        DaskTable.frame_of([tmp_path / "table.csv"], ["y"], ())


# Dask itself uses what pandas is giving up, where files have an index of pandas.
@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_the_command_line_reads_files_as_ever(tmp_path):
    one, other = models_of_marked_files(tmp_path, "dask")
    assert one == other
    files = [str(tmp_path / "0.parquet"), "-t", "y", "--engine", "dask"]
    refused = CliRunner().invoke(app, ["fit", *files, "--encoding", "cp1252"])
    assert refused.exit_code == 2
    assert "--encoding has no effect on" in refused.output


def test_arrays_with_targets_beside_them(client):
    rng = np.random.default_rng(0)
    X, y, w = rng.integers(0, 4, (90, 3)), rng.integers(0, 2, 90), rng.random(90)
    parted = da.from_array(X, chunks=(40, 2))
    place = DaskTable(
        parted, da.from_array(y, chunks=30), da.from_array(w, chunks=90), client=client
    )
    model = of_table(place, CART, sample_weight=place.weight, ignore=[])
    assert model == fit_tree(X, y, CART, sample_weight=w, target_name="y")
    assert model.schema.names == ["x0", "x1", "x2"]
    answers = predict_rows(model, parted).compute()
    assert answers.tolist() == model.predict(X).tolist()


def test_series_beside_frames(client):
    table = some_table(90)
    X = as_dask(pieces(table.drop(columns=["y", "w"]), 3))
    y = as_dask(pieces(table, 3))["y"]
    place = DaskTable(X, y, client=client)
    assert place.target == "y"
    model = of_table(place, ID3, ignore=[])
    assert model == in_memory(table, ID3)
    place = DaskTable(as_dask(pieces(table, 3)), y, client=client)
    assert place.target == "y_"
    again = of_table(place, ID3, ignore=["y", "w"], target_name="y")
    assert again == model


@pytest.mark.parametrize(
    ("X", "y", "complaint"),
    [
        ([[1]], None, "Dask DataFrame or a Dask array.*Got list"),
        (da.ones(3), None, "Expected 2D array, got 1D"),
        (da.ones((3, 1)), [1, 2, 3], "y must be a Dask Series.*Got list"),
        (da.ones((3, 1)), da.ones(2), "Got 2 values for 3 rows"),
        (da.ones((4, 1), chunks=1), dd.from_array(da.ones(4)), "1 partition for 4"),
    ],
)
def test_tables_that_are_none(X, y, complaint):
    with pytest.raises(DataError, match=complaint):
        DaskTable(X, y)


def test_limits_are_checked():
    with pytest.raises(ParameterError, match="most_rows must be a whole number"):
        DaskTable(da.ones((3, 1)), most_rows=-1)
    with pytest.raises(ParameterError, match="retries must be a whole number"):
        DaskTable(da.ones((3, 1)), retries=None)


# ---- what travels -------------------------------------------------------------------


@pytest.mark.slow
def test_what_comes_here_does_not_grow_with_the_rows(client, monkeypatch):
    recipe = replace(ID3, max_depth=3)
    sizes = {}
    for times in (100, 200):
        got: list[int] = []
        gather = ClientExecutor.get

        def weighed(self, wanted, parts, gather=gather, got=got):
            answers = gather(self, wanted, parts)
            got.append(len(pickle.dumps(answers)))
            return answers

        with monkeypatch.context() as patch:
            patch.setattr(ClientExecutor, "get", weighed)
            X = as_dask([some_table(300)] * times).repartition(npartitions=1)
            place = DaskTable(X, client=client, most_rows=0)
            of_table(place, recipe)
        sizes[times] = got
    assert len(sizes[100]) == 5  # the scan, the fingerprints, and three levels
    # Counts travel in as many bytes as they need: here all of them in two. How long a
    # single number of rows is makes the only difference.
    assert np.abs(np.subtract(sizes[100], sizes[200])).max() <= 16


def test_jobs_leave_the_plan_at_home(client, monkeypatch):
    rng = np.random.default_rng(0)
    table = some_table(6000).assign(x=rng.random(6000))
    letters: list[int] = []
    write = WorkerPlan.payload

    def weighed(self, job):
        letters.append(len(write(self, job)))
        return write(self, job)

    monkeypatch.setattr(WorkerPlan, "payload", weighed)
    place = DaskTable(as_dask(pieces(table, 3)), client=client, most_rows=2500)
    of_table(place, replace(ID3, max_depth=4))
    with place:
        plan = place.learn(task_of(ID3, UNWEIGHTED))
    assert len(pickle.dumps(plan)) > 40_000
    assert len(letters) > 2
    assert max(letters) < 6_000


def test_parts_are_counted_where_they_lie(client, monkeypatch):
    asked = []
    each_partition = ClientExecutor.each_partition

    def noted(self, name, work, parts, *items, **shared):
        homes = client.who_has(parts)
        answers = each_partition(self, name, work, parts, *items, **shared)
        distributed.wait(answers)  # by then the scheduler knows of them
        bound = client.run_on_scheduler(bound_to, keys=[done.key for done in answers])
        asked.extend(zip(bound, [homes[part.key] for part in parts], strict=True))
        return answers

    monkeypatch.setattr(ClientExecutor, "each_partition", noted)
    place = DaskTable(as_dask(pieces(some_table(), 4)), client=client, most_rows=0)
    of_table(place, replace(ID3, max_depth=3))
    assert len(asked) == 3 * 4
    for (workers, loosely), home in asked:
        assert sorted(workers) == sorted(home)
        assert loosely


def bound_to(keys: list[str], dask_scheduler: Any) -> list[tuple[list[str], bool]]:
    """Return the workers that tasks prefer, and whether others may do them."""
    tasks = [dask_scheduler.tasks[key] for key in keys]
    return [(list(task.worker_restrictions), task.loose_restrictions) for task in tasks]


def test_rows_of_small_nodes_are_brought_together(client, monkeypatch):
    table = some_table(900)
    trees = []
    for most_blocks, finished in ((50_000, True), (2, False)):
        done_there: list[int] = []
        finish = DaskPartitions.finish

        def counted(self, *given, finish=finish, done_there=done_there):
            for found in finish(self, *given):
                done_there.append(found[0])
                yield found

        with monkeypatch.context() as patch:
            patch.setattr(dask_source, "MOST_BLOCKS", most_blocks)
            patch.setattr(DaskPartitions, "finish", counted)
            place = DaskTable(as_dask(pieces(table, 4)), client=client, most_rows=350)
            trees.append(of_table(place, ID3).tree)
        assert bool(done_there) == finished
    assert trees[0] == trees[1] == in_memory(table, ID3).tree


# ---- what goes wrong ----------------------------------------------------------------


def test_a_partition_that_fails_once_is_tried_again(client, tmp_path):
    table = some_table(90)
    log = str(tmp_path / "log")
    X = as_dask(pieces(table, 3)).map_partitions(faulty, log, 1, meta=table[:0])
    model = of_table(DaskTable(X, client=client), ID3)
    assert model == in_memory(table, ID3)


def test_a_partition_that_always_fails_is_named(client, tmp_path):
    table = some_table(90)
    parts = pieces(table, 3)
    X = as_dask([parts[1], parts[0], parts[2]])
    X = X.map_partitions(faulty, str(tmp_path / "log"), 99, meta=table[:0])
    place = DaskTable(X, client=client, retries=1)
    told = r"Partition 1 .* tried 2 times; nothing was fitted. .* OSError: the disk is"
    with pytest.raises(DataError, match=told) as raised:
        place.learn(Task("y"))
    assert isinstance(raised.value.__cause__, OSError)
    with (
        dask.config.set(scheduler="synchronous"),
        pytest.raises(DataError, match="cannot be read: OSError: the disk is gone"),
    ):
        DaskTable(X).learn(Task("y"))


def test_bad_cells_are_told_as_in_memory(client, capfd):
    table = some_table(90).assign(x=1.0)
    table.loc[65, "x"] = np.inf
    place = DaskTable(as_dask(pieces(table, 3)), client=client)
    told = r"Column 'x' is infinite in row 5 .*In partition 2, whose rows start at 0"
    with pytest.raises(DataError, match=told) as raised:
        place.learn(Task("y"))
    assert raised.value.__cause__ is None
    # No worker has shown where in the code of branchwise that was found.
    assert "Traceback" not in capfd.readouterr().err
    mixed = as_dask([table[["c0", "y"]], table[["y"]].assign(c0=1)])
    with pytest.raises(DataError, match="'c0' holds numbers in some chunks"):
        DaskTable(mixed, client=client).learn(Task("y"))
    with pytest.raises(DataError, match="no column 'z' to be the target"):
        DaskTable(mixed, client=client).learn(Task("z"))
    short = DaskTable(
        as_dask([table[:5], table[5:]]), as_dask([table[:6], table[6:]])["y"]
    )
    with pytest.raises(DataError, match="Got 6 values for 5 rows in this partition"):
        short.learn(Task(short.target))


def test_a_table_that_changes_is_refused(client, tmp_path):
    table = some_table(90)
    log = tmp_path / "log"
    X = as_dask([table]).map_partitions(moody, str(log), meta=table[:0])
    with DaskTable(X, client=client, hold=False) as place:
        plan = place.learn(UNWEIGHTED)
        with pytest.raises(DataError, match="it had 91 rows and now has 90"):
            place.engine(replace(plan, n_rows=91))
        worker_plan = WorkerPlan(plan)
        part = encoded(0, held(0, table, {}), worker_plan)
        log.touch()
        other = encoded(0, held(0, X.compute(), {}), worker_plan)
    payload = worker_plan.payload(CountColumns(Route(plan), (0,)))
    assert not isinstance(done(part, part.fingerprint, worker_plan, payload), Rejected)
    refused = done(other, part.fingerprint, worker_plan, payload)
    assert "the result differs from the first" in str(refused.error)


def test_fingerprints_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(0)
    codes = tuple(rng.integers(0, 5, 20_000).astype(np.uint8) for _ in range(3))
    part = Chunk(codes, rng.integers(0, 2, 20_000).astype(np.uint8), rng.random(20_000))
    fingerprint = Fingerprint.of(part)
    assert Fingerprint.of(part.take(rng.permutation(20_000))) == fingerprint
    assert Fingerprint.of(part.take(np.arange(19_999))) != fingerprint
    swapped = replace(part, codes=(codes[1], codes[0], codes[2]))
    assert Fingerprint.of(swapped) != fingerprint
    # The same values in each column, otherwise put together.
    assert Fingerprint.of(replace(part, target=np.roll(part.target, 1))) != fingerprint


def interrupted_soon() -> None:
    timer = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()


def test_an_interrupt_leaves_nothing_behind(client):
    table = some_table(90)
    X = as_dask(pieces(table, 3)).map_partitions(slow, meta=table[:0])
    place = DaskTable(X, client=client)
    interrupted_soon()
    with pytest.raises(KeyboardInterrupt):
        place.learn(UNWEIGHTED)
    assert place._held is None


def killed_after_encoding(place: DaskTable, client: Any, recipe: Recipe) -> Any:
    """Grow a tree, and kill the worker that holds the first part on the way."""
    plan = place.learn(task_of(recipe, UNWEIGHTED))
    run, passes = DaskPartitions.run, []

    def run_and_kill(self, job):
        if len(passes) == 1:
            (address, *_) = client.who_has([self.chunks[0]])[self.chunks[0].key]
            os.kill(client.run(os.getpid, workers=[address])[address], signal.SIGKILL)
        passes.append(job)
        return run(self, job)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DaskPartitions, "run", run_and_kill)
        return Model(plan.schema, grown_by_engine(place, plan, recipe), recipe)


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
def test_a_lost_worker_costs_nothing_but_time(client, times):
    table = some_table(600)
    X = as_dask(pieces(table, 6))
    for _ in range(times):
        with DaskTable(X, client=client, most_rows=0) as place:
            model = killed_after_encoding(place, client, C45)
        assert model.tree == in_memory(table, C45).tree
        client.wait_for_workers(2, timeout=120)


@pytest.mark.slow
def test_rows_that_differ_after_a_lost_worker_are_refused(client, tmp_path):
    table = some_table(600)
    log = tmp_path / "log"
    X = as_dask(pieces(table, 6)).map_partitions(moody, str(log), meta=table[:0])
    with DaskTable(X, client=client, most_rows=0) as place:
        engine = place.engine

        def engine_and_change(plan):
            found = engine(plan)
            log.touch()
            return found

        place.engine = engine_and_change
        with pytest.raises(DataError, match=r"the result differs.*In partition"):
            killed_after_encoding(place, client, ID3)
    client.wait_for_workers(2, timeout=120)


def test_work_that_is_lost_is_no_tree(client):
    table = some_table(90)
    X = as_dask(pieces(table, 2)).map_partitions(slow, meta=table[:0])
    place = DaskTable(X, client=client)

    def lose() -> None:
        client.cancel(list(place._executor._futures), force=True)

    threading.Timer(1, lose).start()
    with pytest.raises(BranchwiseError, match="The work was lost: the Dask cluster"):
        of_table(place, ID3)


# ---- predictions --------------------------------------------------------------------


def test_predictions_where_the_rows_lie(client):
    table = some_table(90).set_index(pd.Index(np.arange(90) * 3, name="id"))
    model = in_memory(table, ID3)
    X = dd.from_pandas(table, npartitions=4)
    classes = predict_rows(model, X)
    assert classes.name == "prediction"
    assert classes.divisions == X.divisions
    assert classes.compute().tolist() == model.predict(table).tolist()
    assert classes.compute().index.equals(table.index)
    leaves = predict_rows(model, X, "leaves")
    assert leaves.dtype == np.intp
    assert leaves.compute().tolist() == model.apply(table).tolist()
    shares = predict_rows(model, X, "probabilities")
    named = [f"probability of {label}" for label in model.schema.classes]
    assert list(shares.columns) == named
    assert (shares.compute().to_numpy() == model.predict_proba(table)).all()
    # What is promised is what comes.
    for lazy in (classes, leaves, shares):
        dd.utils.assert_eq(lazy, lazy.compute())


def test_predictions_for_arrays():
    rng = np.random.default_rng(0)
    X, y = rng.random((50, 3)), rng.integers(0, 3, 50)
    model = fit_tree(X, y, CART)
    parted = da.from_array(X, chunks=(20, 2))
    shares = predict_rows(model, parted, "probabilities")
    assert shares.shape == (50, 3)
    assert (shares.compute() == model.predict_proba(X)).all()
    leaves = predict_rows(model, parted, "leaves")
    assert leaves.shape == (50,)
    assert leaves.dtype == np.intp
    assert (leaves.compute() == model.apply(X)).all()


def test_predictions_of_numbers():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.random(40)})
    model = fit_tree(table, pd.Series(rng.random(40), name="y"), RECIPES["numbers"])
    X = dd.from_pandas(table, npartitions=2)
    numbers = predict_rows(model, X)
    assert numbers.dtype == np.float64
    assert numbers.compute(scheduler="sync").tolist() == model.predict(table).tolist()
    with pytest.raises(ParameterError, match="needs a tree that predicts classes"):
        predict_rows(model, X, "probabilities")
    with pytest.raises(ParameterError, match="what must be one or more of 'classes'"):
        predict_rows(model, X, "answers")
    with pytest.raises(ParameterError, match=r"for a Dask table\. Got 'classes', 'l"):
        predict_rows(model, X, ["classes", "leaves"])
    with pytest.raises(ParameterError, match="keep has no effect on a Dask table"):
        predict_rows(model, X, keep=True)
    with pytest.raises(ParameterError, match="output has no effect on a Dask table"):
        predict_rows(model, X, output="out.csv")
