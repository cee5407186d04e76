"""``branchwise show``: styles, pictures and files."""

from __future__ import annotations

import pytest

from branchwise import load
from command_line import output, refusal, usage_error


@pytest.fixture
def tree(model):
    return model("weather")


@pytest.mark.parametrize("style", ["quinlan", "box", "markdown"])
def test_styles_of_text(tree, style):
    fitted = load(tree)
    assert output("show", tree, "--style", style) == (
        fitted.to_text(style=style) + "\n"
    )
    assert output("show", tree, "-s", style, "--max-depth=1", "--empty-branches") == (
        fitted.to_text(style=style, max_depth=1, empty_branches=True) + "\n"
    )


@pytest.mark.parametrize("style", ["svg", "dot", "mermaid"])
def test_pictures(tree, style):
    draw = getattr(load(tree), f"to_{style}")
    assert output("show", tree, "--style", style) == draw() + "\n"
    assert output("show", tree, "--style", style, "--max-depth=1") == (
        draw(max_depth=1) + "\n"
    )
    assert output("show", tree, "--style", style, "--max-nodes=4") == (
        draw(max_nodes=4) + "\n"
    )


@pytest.mark.parametrize(
    "options", [["--style=svg"], [], ["--rules"], ["--nodes"], ["--format=json"]]
)
def test_files(tree, tmp_path, options):
    path = tmp_path / "out"
    assert output("show", tree, *options, "-o", path) == ""
    assert path.read_text(encoding="utf-8") == output("show", tree, *options)
    assert output("show", tree, *options, "-o", "-") == output("show", tree, *options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--style=svg --rules", "--style has no effect with --rules."),
        ("--style=svg --nodes", "--style has no effect with --nodes."),
        ("--style=box --format=json", "--style has no effect with --format json."),
        ("--rules --format=json", "--rules has no effect with --format json."),
        ("--nodes --format=json", "--nodes has no effect with --format json."),
        ("--max-depth=1 --rules", "--max-depth has no effect with --rules."),
        (
            "--max-depth=1 --format=json",
            "--max-depth has no effect with --format json.",
        ),
        ("--max-nodes=5", "--max-nodes has no effect with --style quinlan."),
        ("--max-nodes=5 --style=box", "--max-nodes has no effect with --style box."),
        ("--max-nodes=5 --nodes", "--max-nodes has no effect with --nodes."),
        ("--empty-branches --rules", "--empty-branches has no effect with --rules."),
        ("--empty-branches --nodes", "--empty-branches has no effect with --nodes."),
        (
            "--empty-branches --style=svg",
            "--empty-branches has no effect with --style svg.",
        ),
        (
            "--empty-branches --style=mermaid",
            "--empty-branches has no effect with --style mermaid.",
        ),
    ],
)
def test_options_without_effect(tree, options, message):
    said = refusal("show", tree, *options.split(), code=2)
    assert said == f"{message} Leave one of them out."


def test_bad_values(tree, tmp_path):
    assert "--style" in usage_error("show", tree, "--style=tiff")
    assert "--max-nodes" in usage_error("show", tree, "--max-nodes=0")
    assert "is a directory" in refusal("show", tree, "-o", tmp_path)
    nowhere = tmp_path / "none" / "tree.svg"
    assert "There is no directory" in refusal("show", tree, "-o", nowhere)


FORMATS = {
    "t.svg": b"<svg",
    "t.SVG": b"<svg",
    "t.dot": b"digraph",
    "t.gv": b"digraph",
    "t.mmd": b"flowchart",
    "t.html": b"<!doctype html>",
    "t.htm": b"<!doctype html>",
    "t.md": b"- ",
    "t.txt": b"outlook = ",
    "t": b"outlook = ",
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_is_what_its_ending_says(tree, tmp_path, name):
    path = tmp_path / name
    assert output("show", tree, "-o", path) == ""
    assert path.read_bytes().startswith(FORMATS[name])


def test_a_picture_of_dots(tree, tmp_path):
    pytest.importorskip("matplotlib").use("agg")
    path = tmp_path / "t.png"
    assert output("show", tree, "-o", path, "--max-depth=1") == ""
    assert path.read_bytes().startswith(b"\x89PNG")
    assert "Say where to with -o FILE" in refusal("show", tree, "--style=png", code=2)


def test_endings_that_say_something_else(tree, tmp_path):
    path = tmp_path / "t.pdf"
    message = refusal("show", tree, "-o", path, code=2)
    assert (
        "no style is known for files that end in '.pdf'. Known are .txt, .md" in message
    )
    path = tmp_path / "t.svg"
    message = refusal("show", tree, "-o", path, "--style=box", code=2)
    assert "ends in '.svg' is svg. Got --style box: give" in message
    message = refusal("show", tree, "-o", path, "--rules", code=2)
    assert "ends in '.svg' is svg. Got text: give" in message
    assert list(tmp_path.glob("t.*")) == []
    for name, option in {"a.txt": "--style=svg", "b.md": "--rules"}.items():
        assert output("show", tree, "-o", tmp_path / name, option) == ""
    assert output("show", tree, "-o", tmp_path / "c.json", "--format=json") == ""
    assert output("show", tree, "-o", tmp_path / "d.rules", "--rules") == ""
