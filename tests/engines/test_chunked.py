"""Files in parts give the model file that the same files give in memory."""

from __future__ import annotations

import decimal
import gzip
from dataclasses import replace
from itertools import cycle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyarrow import feather, ipc, parquet

from branchwise import CARTRegressor, DataError, ParameterError, datasets, fit_tree
from branchwise.engines import chunked
from branchwise.engines.base import Task
from branchwise.engines.chunked import ChunkedTable
from branchwise.ensemble.stored_model import load
from branchwise.files import dataset as part_files
from branchwise.files.dataset import StreamedTable
from branchwise.files.options import Reading
from branchwise.files.table_paths import files_of
from branchwise.recipe import C45, CART, ID3
from branchwise.train.train import task_of
from selection import first_fast


@pytest.fixture
def write(tmp_path):
    def write(content, name="data.csv"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def blocks_of(monkeypatch, size):
    monkeypatch.setattr(part_files, "BLOCK_BYTES", size)


def in_memory(path, recipe=ID3, **how):
    return fit_tree(path, "y", recipe, engine="memory", **how).to_bytes()


def in_parts(path, recipe=ID3, chunk_rows=None, **how):
    table = replace(StreamedTable.of(path), chunk_rows=chunk_rows)
    return fit_tree(table, "y", recipe, engine="chunked", **how).to_bytes()


def mixed_table(n=160, seed=0):
    rng = np.random.default_rng(seed)
    words = np.array(["x", "y,z", "new\nline", 'st"ray', '"q"', "ß", None], object)
    table = pd.DataFrame(
        {
            "a": words[rng.integers(0, len(words), n)],
            "b": np.round(rng.normal(size=n), 1),
            "c": rng.integers(0, 9, n),
            "d": rng.choice(["u", "v"], n),
            "w": rng.integers(0, 4, n),
        }
    )
    table.loc[rng.random(n) < 0.1, "b"] = np.nan
    right = (table["b"].fillna(0) > 0) ^ (table["d"] == "u") ^ (rng.random(n) < 0.1)
    table["y"] = np.where(right, "p", "n")
    return table


# ---- delimited text ---------------------------------------------------------------

TEXTS = {
    "quoted": 'a,b,y\n"x, ""1""",2,p\n"new\n""line""\n",3,n\nst"ray,4,p\n"",5,n\n',
    "stray quotes": 'a,y\n5" nail,p\n"6"" nail",n\nx"",p\n"q" ,n\n"",p\n',
    "carriage returns": 'a,b,y\rx,1,p\r"in\nside",2,n\rz,3,p\r',
    "both": 'a,b,y\r\nx,1,p\r\n"in\r\nside",2,n\r\n\r\nz,3,p\r\n',
    "byte order mark": "\ufeffa,y\n\ufeffx,p\nx,n\n\ufeffx,p\n",
    "semicolons": "a;b;y\n1,5;x;p\n2,5;z;n\n",
    "missing": "a,b,y\n?,1,p\n,?,n\nx,,p\nNA,2,n\n",
    "late text": "a,b,y\n1,1,p\n2,2,n\n3.50,3,p\nx,4,n\n",
    "late text in the target": "a,y\n1,1\n2,01\n3,x\n1,1\n",
    "late fractions": "a,y\n1,p\n2,n\n3,p\n2.5,n\n",
    "empty at first": "a,b,y\n,,p\n,,n\n1,x,p\n2,z,n\n",
    "nothing at all": "a,b,y\n,1,p\n,2,n\n",
    "dates": "a,b,y\n2020-01-02,12:30,p\n2020-01-03,x,n\n2020,7,p\n",
    "truth": "a,y\ntrue,TRUE\nfalse,FALSE\ntrue,TRUE\n",
    "blank lines": "a,b,y\n\nx,1,p\n\n\nz,2,n\n\n",
    "no end": "a,b,y\nx,1,p\nz,2,n",
    "huge and small": "a,y\n1e300,p\n-1e-300,n\n0,p\n-0.0,n\n",
}


@pytest.mark.parametrize("size", first_fast([1, 2**25, 5, 9]))
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.filterwarnings("ignore:1 text column is read as numbers")
def test_blocks_may_end_anywhere(name, size, write, monkeypatch):
    blocks_of(monkeypatch, size)
    path = write(TEXTS[name])
    for chunk_rows in (1, 2, None):
        assert in_parts(path, chunk_rows=chunk_rows) == in_memory(path)


@pytest.mark.parametrize("seed", first_fast(range(40), n_fast=3))
def test_any_text_in_any_blocks(seed, tmp_path, monkeypatch):
    rng = np.random.default_rng(seed)
    cells = ["a", "b c", "1", "2.5", "", "?", 'q"', '""', '"', "x,y", "l\nm"]
    quoting = int(rng.integers(0, 2))
    cells += ["r\rs"] if quoting else []
    table = pd.DataFrame(rng.choice(cells, (int(rng.integers(1, 30)), 3)))
    table.columns = ["a", "b", "y"]
    table["y"] = rng.choice(["p", "n"], len(table))
    path = tmp_path / "data.csv"
    end = str(rng.choice(["\n", "\r\n"]))
    table.to_csv(path, index=False, lineterminator=end, quoting=quoting)
    blocks_of(monkeypatch, int(rng.integers(1, 60)))
    assert in_parts(path, chunk_rows=int(rng.integers(1, 9))) == in_memory(path)


@pytest.mark.parametrize("quotes", ['"1"0', '"a""b"c', '"a\nb"c', '""""x'])
def test_text_after_a_closing_quote(quotes, write, monkeypatch):
    """It would be joined to the cell without a word: 10 in place of 1."""
    for before in ("x,p\n", "x,p\n" * 200_000):
        path = write(f"a,y\n{before}{quotes},n\n5,p\n")
        line = 2 + before.count("\n") + quotes.count("\n")
        said = rf"text after a closing quotation mark in line {line:,}, column"
        with pytest.raises(DataError, match=said):
            in_memory(path)
        with pytest.raises(DataError, match=said):
            in_parts(path, chunk_rows=50_000)


def test_packed_and_tabbed_text(write):
    plain = in_memory(write("a,b,y\nx,1,p\nz,2,n\nx,3,p\n"))
    tabbed = "a\tb\ty\nx\t1\tp\nz\t2\tn\nx\t3\tp\n"
    assert in_parts(write(tabbed, "data.tsv")) == plain
    assert in_parts(write(gzip.compress(tabbed.encode()), "data.tsv.gz")) == plain
    packed = gzip.compress(b"a,b,y\nx,1,p\nz,2,n\nx,3,p\n")
    assert in_parts(write(packed, "data.csv.gz")) == plain
    assert in_parts(write("a;b;y\nx;1;p\nz;2;n\nx;3;p\n".encode("utf-16"))) == plain


def test_text_that_looks_like_numbers(write):
    path = write("zip,y\n007,p\n7,n\n007,p\n08,n\n")
    table = StreamedTable((str(path),), text_columns=["zip"], chunk_rows=1)
    model = fit_tree(table, "y")
    assert model.schema.columns[0].categories == ("007", "08", "7")
    frame = pd.read_csv(path, dtype=str)
    assert model.to_bytes() == fit_tree(frame, "y").to_bytes()


def test_names_and_marks_are_those_that_are_given(write):
    path = write("x,1,p\nNA,2,n\nx,3,p\n")
    reading = Reading(names=("a", "b", "y"))
    model = fit_tree(StreamedTable((str(path),), reading, missing=("NA",)), "y")
    assert model.schema.columns[0].categories == ("x",)
    assert model.schema.columns[0].has_missing
    names = write("a\nb\ny\n", "names.txt")
    reading = Reading(names_file=str(names))
    again = fit_tree(StreamedTable((str(path),), reading, missing=("NA",)), "y")
    assert again.to_bytes() == model.to_bytes()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a,b,y\n1,2,p\n1,2\n", r"2 cells in line 3, but 3 in its header"),
        ('a,y\n1,p\n"2,n\n3,p\n', "runs on for 2 lines|never closed"),
        ("a,y\n1,p\na,y\n", "header once more in line 3"),
        ("a,a,y\n1,2,p\n", "more than one column named 'a'"),
        ("a,b\n1,2\n", "has no column 'y'"),
        ("a,y\n", "no rows"),
        ("", "is empty"),
        ("a,y\n1,p\n2,\n", r"the first of them row \d. .*line 3 of"),
        ("a,y\n1,p\ninf,n\n", r"infinite in row \d .*line 3 of"),
        ("a,y\n1,p\n9007199254740993,n\n", r"beyond 2\*\*53.*line 3 of"),
    ],
)
@pytest.mark.parametrize("size", [4, 2**25])
def test_what_is_wrong_with_text_is_told_with_its_line(
    text, complaint, size, write, monkeypatch
):
    blocks_of(monkeypatch, size)
    with pytest.raises(DataError, match=complaint):
        in_parts(write(text), chunk_rows=2)


def test_a_row_without_end_does_not_take_all_memory(write, monkeypatch):
    from branchwise.files.csv import csv_rows as records

    monkeypatch.setattr(records, "_LONGEST_ROW", 200)
    blocks_of(monkeypatch, 50)
    path = write('a,y\n1,p\n"2,n\n' + "3,p\n" * 500)
    with pytest.raises(DataError, match=r"more than 200 bytes.*quotation mark"):
        in_parts(path)


# ---- typed files ------------------------------------------------------------------


def typed_table(n=60):
    rng = np.random.default_rng(3)
    words = rng.choice(["b", "a", "c"], n)
    sizes = pd.Categorical(
        rng.choice(["small", "large"], n), ["small", "medium", "large"], ordered=True
    )
    prices = [decimal.Decimal(int(p)) / 4 for p in rng.integers(0, 9, n)]
    return pd.DataFrame(
        {
            "text": words,
            "category": pd.Categorical(rng.choice(["q", "p"], n), ["q", "none", "p"]),
            "size": sizes,
            "codes": pd.Categorical(rng.integers(3, 6, n)),
            "truth": rng.choice([True, False, None], n),
            "price": prices,
            "whole": pd.array(rng.integers(0, 5, n), "Int16"),
            "single": rng.integers(0, 5, n).astype(np.float32),
            "nothing": [None] * n,
            "y": rng.choice([True, False], n),
        },
        index=pd.Index(rng.permutation(n)),
    )


WRITERS = {
    "parquet": lambda table, path: table.to_parquet(path, row_group_size=13),
    "feather": lambda table, path: feather.write_feather(table, path, chunksize=13),
    "stream": lambda table, path: _stream(pa.Table.from_pandas(table), path),
}


def _stream(table, path):
    with ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=13)


@pytest.mark.parametrize("form", WRITERS)
def test_typed_columns_are_what_they_are_in_memory(form, tmp_path):
    path = tmp_path / f"data.{form}"
    WRITERS[form](typed_table(), path)
    expected = in_memory(path)
    names = [column.name for column in load_bytes(expected).schema.columns]
    assert "__index_level_0__" not in names
    for chunk_rows in (1, 20, 1000):
        assert in_parts(path, chunk_rows=chunk_rows) == expected


def load_bytes(content):
    from branchwise import model_file as persist
    from branchwise.model import Model

    return Model(*persist.from_bytes(content, "a model"))


def test_dictionaries_may_differ_between_row_groups(tmp_path):
    path = tmp_path / "data.parquet"
    kind = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([("a", kind), ("y", pa.string())])
    with parquet.ParquetWriter(path, schema) as writer:
        for values, codes in ((["q", "p"], [0, 1, 1]), (["p", "b", "x"], [1, 0, 1])):
            column = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), values)
            table = pa.table([column, pa.array(["n", "m", "n"])], schema=schema)
            writer.write_table(table)
    for chunk_rows in (1, 2, 100):
        assert in_parts(path, chunk_rows=chunk_rows) == in_memory(path)
    assert load_bytes(in_parts(path)).schema.columns[0].categories == ("b", "p", "q")


def test_orders_that_differ_are_refused(tmp_path):
    for number, values in enumerate((["low", "high"], ["high", "low"])):
        size = pd.Categorical(["low", "high"], values, ordered=True)
        table = pd.DataFrame({"size": size, "y": ["p", "n"]})
        table.to_parquet(tmp_path / f"{number}.parquet")
    with pytest.raises(DataError, match="'size' has its values in one order in some"):
        fit_tree(tmp_path, "y")


@pytest.mark.parametrize(
    ("column", "complaint"),
    [
        ([[1, 2], [3]], "In row 1 to row 2 of .*nested values"),
        ([{"a": 1}, {"a": 2}], "nested values"),
        ([b"x", b"y"], "holds bytes"),
        ([2**53 + 1, 1], r"beyond 2\*\*53.*row 1 of"),
    ],
)
def test_columns_that_cannot_be_taken(column, complaint, tmp_path):
    path = tmp_path / "data.parquet"
    parquet.write_table(pa.table({"a": column, "y": ["p", "n"]}), path)
    with pytest.raises(DataError, match=complaint):
        in_parts(path)
    ignoring = StreamedTable((str(path),), ignore=["a"])
    with pytest.raises(DataError, match="no attributes"):
        fit_tree(ignoring, "y")


@pytest.mark.parametrize("content", [b"PAR1 and no more", b"ARROW1 and no more"])
def test_files_that_are_not_whole(content, write):
    with pytest.raises(DataError, match=r"is not a whole (Parquet|Arrow) file"):
        in_parts(write(content, "data.bin"))


# ---- several files ----------------------------------------------------------------


def halves(tmp_path, table):
    folder = tmp_path / "sales"
    folder.mkdir()
    table.iloc[:50].to_parquet(folder / "part-0.snappy.parquet")
    table.iloc[50:, ::-1].to_parquet(folder / "part-1.snappy.parquet")
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.crc").write_bytes(b"x")
    (folder / "_delta_log").mkdir()
    (folder / "_delta_log" / "0.json").touch()
    return folder


def test_files_of_a_table_in_every_way(tmp_path):
    table = mixed_table()
    folder = halves(tmp_path, table)
    files = sorted(folder.glob("*.parquet"))
    whole = tmp_path / "whole.parquet"
    table.to_parquet(whole)
    expected = in_memory(whole)
    dataset = ds.dataset(files)
    for source in (folder, str(folder), f"{folder}/*.parquet", files, dataset):
        assert fit_tree(source, "y").to_bytes() == expected
    assert files_of(f"{tmp_path}/**/part-*.parquet") == tuple(map(str, files))


def test_columns_that_differ_between_files(tmp_path):
    table = mixed_table()
    folder = halves(tmp_path, table)
    table.drop(columns="a").to_parquet(folder / "part-2.parquet")
    with pytest.raises(DataError, match=r"must have the same columns.*part-2"):
        fit_tree(folder, "y")


def test_types_that_differ_between_files(write):
    first = write("a,y\n1,p\n2,n\n", "1.csv")
    second = write("a,y\n01,p\nx,n\n", "2.csv")
    model = fit_tree([first, second], "y")
    assert model.schema.columns[0].categories == ("01", "1", "2", "x")


def test_files_without_rows_do_no_harm(write):
    files = [write(t, f"{at}.csv") for at, t in enumerate(["a,y\n", "a,y\n1,p\n2,n\n"])]
    assert fit_tree(files, "y").to_bytes() == in_memory(files[1])
    with pytest.raises(DataError, match="no rows"):
        fit_tree(files[:1], "y", engine="chunked")
    with pytest.raises(DataError, match="has no column 'z'"):
        fit_tree(files[:1], "z", engine="chunked")


def test_columns_told_by_folders_are_refused(tmp_path):
    table = pa.table({"a": [1, 2], "year": [1, 2], "y": ["p", "n"]})
    ds.write_dataset(
        table,
        tmp_path,
        format="parquet",
        partitioning=ds.partitioning(pa.schema([("year", pa.int64())]), flavor="hive"),
    )
    dataset = ds.dataset(tmp_path, partitioning="hive")
    for source in (tmp_path, dataset):
        with pytest.raises(DataError, match="column 'year' is given by"):
            fit_tree(source, "y")
    assert fit_tree(f"{tmp_path}/*/*.parquet", "y").schema.names == ["a"]


def test_datasets_that_are_more_than_their_files(tmp_path):
    table = pa.table({"a": [1, 2], "b": [1, 2], "y": ["p", "n"]})
    parquet.write_table(table, tmp_path / "0.parquet")
    dataset = ds.dataset(tmp_path)
    some = ds.dataset(tmp_path, schema=table.schema.remove(1))
    for source, complaint in (
        (ds.dataset(table), "must be one of files. Got InMemoryDataset"),
        (dataset.filter(ds.field("a") > 1), "with a filter has other rows"),
        (some, "leaves out 'b'"),
        (ds.dataset([dataset, dataset]), "must be one of files. Got UnionDataset"),
    ):
        with pytest.raises(DataError, match=complaint):
            fit_tree(source, "y")


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("{}/none.csv", r"There is no file .*none.csv"),
        ("{}/*.none", r"There is no file .*\*.none"),
        ("{}/weather.arff", "weather.arff is ARFF, which is not read in chunks"),
        ("{}/golf.data", "is C4.5, which is not read in chunks"),
        ("-", "Standard input cannot be read in chunks"),
    ],
)
def test_sources_that_are_no_tables_in_parts(source, complaint, write, tmp_path):
    write("@relation w\n@attribute a {x}\n@data\nx\n", "weather.arff")
    write("x, p\n", "golf.data")
    write("p, n.\na: x.\n", "golf.names")
    with pytest.raises(DataError, match=complaint):
        fit_tree(source.format(tmp_path), "y", engine="chunked")


def test_what_is_no_file_is_refused():
    for source in (3, [3], [StreamedTable(("a.csv",))]):
        with pytest.raises(DataError, match="must be given as a path, a pattern"):
            ChunkedTable(source)
    with pytest.raises(ParameterError, match="most_rows must be a whole number"):
        ChunkedTable("a.csv", most_rows=-1)
    weather = StreamedTable((str(datasets.path("weather")),), Reading(sheet="1"))
    with pytest.raises(ParameterError, match=r"^sheet has no effect on"):
        fit_tree(weather, "play")


# ---- algorithms -------------------------------------------------------------------

RECIPES = {
    "id3": ID3,
    "id3 divided": replace(ID3, missing="split"),
    "c4.5": C45,
    "c4.5 raised": replace(C45, confidence=0.45),
    "cart": replace(CART, pruning="cost-complexity", ccp_alpha=0.001),
    "surrogates": replace(CART, missing="surrogate"),
    "learned": replace(CART, missing="learned"),
    "bins": replace(CART, max_bins=4),
    "heavy leaves": replace(C45, min_weight_fraction_leaf=0.05),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    table = mixed_table()
    table.to_csv(folder / "data.csv", index=False)
    table.to_parquet(folder / "data.parquet", row_group_size=40)
    mixed_table(90, seed=1).to_csv(folder / "others.csv", index=False)
    return folder


#: Each algorithm with one format; where there is time, with the other, too.
FORMATS = [
    *zip(RECIPES, cycle(["csv", "parquet"])),
    *zip(RECIPES, cycle(["parquet", "csv"])),
]


@pytest.mark.parametrize("case", first_fast(FORMATS, n_fast=len(RECIPES)))
def test_every_algorithm_with_and_without_cache(case, files, monkeypatch):
    name, form = case
    blocks_of(monkeypatch, 1500)
    path, recipe = files / f"data.{form}", RECIPES[name]
    table = replace(StreamedTable.of(path), chunk_rows=70)
    for how, options in {
        "csv": [({"ignore": ["w"]}, {"cache": False}), ({"sample_weight": "w"}, {})],
        "parquet": [
            ({"ignore": ["w"]}, {"most_rows": 40}),
            ({"sample_weight": "w"}, {"most_rows": 0}),
        ],
    }[form]:
        place = ChunkedTable(table, **options)
        fitted = fit_tree(place, "y", recipe, **how)
        assert fitted.to_bytes() == in_memory(path, recipe, **how)


def test_numbers_are_predicted(files):
    recipe = replace(CART, criterion="variance", max_depth=5)
    table = pd.read_csv(files / "data.csv").drop(columns=["y", "w"])
    table = table.rename(columns={"c": "y"})
    path = files / "numbers.parquet"
    table.to_parquet(path)
    assert in_parts(path, recipe, chunk_rows=50) == in_memory(path, recipe)
    tree = CARTRegressor(max_depth=5).fit(str(path), "y").tree_
    assert tree == load_bytes(in_memory(path, recipe)).tree


def test_rows_to_prune_with_in_other_files(files, monkeypatch):
    blocks_of(monkeypatch, 500)
    recipe = replace(ID3, pruning="reduced-error")
    others = files / "others.csv"
    how = {"ignore": ["w"], "validation": others}
    assert in_parts(files / "data.csv", recipe, chunk_rows=33, **how) == in_memory(
        files / "data.csv", recipe, **how
    )


def test_rows_to_prune_with_are_read_as_the_others_were(write):
    recipe = replace(ID3, pruning="reduced-error")
    path = write("a,y\n1,p\n2,n\nx,p\n", "data.csv")
    others = write("a,y\n1,p\n2,n\n", "others.csv")
    model = fit_tree(path, "y", recipe, validation=others)
    assert model.schema.columns[0].categories == ("1", "2", "x")


def test_nodes_are_finished_in_few_files_at_a_time(files, monkeypatch):
    monkeypatch.setattr(chunked, "MOST_FILES", 2)
    path = files / "data.parquet"
    place = ChunkedTable(replace(StreamedTable.of(path), chunk_rows=60), most_rows=20)
    said = []
    place._say = said.append
    assert fit_tree(place, "y").to_bytes() == in_memory(path)
    finished = [text for text in said if text.startswith("Finishing")]
    assert len(finished) > 4
    assert finished[-1].endswith("files")


def test_passes_are_told(files):
    said = []
    place = ChunkedTable(files / "data.parquet", say=said.append)
    fit_tree(place, "y", replace(ID3, max_depth=1), ignore=["w"])
    assert said == [
        "Scanning the rows: 160",
        "Encoding the rows: 160 of 160",
        "Finishing nodes: 1 of 1 files",
    ]


# ---- columns of more numbers than are kept apart ----------------------------------


@pytest.fixture(scope="module")
def many_numbers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("numbers")
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"x": rng.lognormal(size=600), "z": rng.integers(0, 9, 600)})
    table["y"] = np.where(table["x"] + table["z"] > 5, "p", "n")
    for number in range(3):
        part = table.iloc[200 * number : 200 * (number + 1)]
        part.to_parquet(folder / f"{number}.parquet")
    return sorted(folder.glob("*.parquet"))


def test_summaries_are_the_same_for_all_parts_and_orders(many_numbers):
    expected = fit_tree(many_numbers, "y", max_exact=100).to_bytes()
    for order in ([2, 0, 1], [1, 2, 0]):
        table = StreamedTable(tuple(str(many_numbers[at]) for at in order))
        for chunk_rows in (7, 150, 10**6):
            parts = replace(table, chunk_rows=chunk_rows)
            assert fit_tree(parts, "y", max_exact=100).to_bytes() == expected
    assert fit_tree(many_numbers, "y").to_bytes() != expected


def test_models_say_which_columns_were_summed_up(many_numbers, tmp_path):
    model = fit_tree(many_numbers, "y", max_exact=100)
    assert [column.sketched for column in model.schema.columns] == [True, False]
    assert "x  numeric, split between bins" in model.schema.describe()
    assert model.to_bytes().count(b'"sketched"') == 1
    model.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert again.schema == model.schema
    assert again.to_bytes() == model.to_bytes()
    exact = fit_tree(many_numbers, "y")
    assert b"sketched" not in exact.to_bytes()


def test_a_summary_is_nearly_as_good_as_all_numbers(many_numbers):
    table = pd.concat(map(pd.read_parquet, many_numbers))
    rows = table.drop(columns="y")
    recipe = replace(CART, max_depth=6)
    exact = fit_tree(many_numbers, "y", recipe).score(rows, table["y"])
    summed = fit_tree(many_numbers, "y", recipe, max_exact=100).score(rows, table["y"])
    assert summed > exact - 0.03


def test_the_look_can_be_had_alone(files):
    with ChunkedTable(files / "data.csv") as place:
        plan = place.learn(task_of(ID3, Task("y", "w")))
    assert plan.n_rows == 160
    assert [column.name for column in plan.schema.columns] == ["a", "b", "c", "d"]


def test_a_place_forgets_what_an_earlier_fit_found_out(write):
    path = write("a,b,y\n1,x,p\n2,z,n\nword,x,p\n")
    place = ChunkedTable(path)
    assert fit_tree(place, "y").schema.columns[0].categories == ("1", "2", "word")
    write("a,b,y\n1,x,p\n2,z,n\n3,x,p\n")
    assert fit_tree(place, "y").to_bytes() == in_memory(path)
