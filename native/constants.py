"""Writes the constants that the kernel shares with the reference as a C++ header.

    python native/constants.py src/branchwise constants.hpp

They are read from the sources of the reference without importing these: a build has
no NumPy.
"""

from __future__ import annotations

import ast
import math
import sys
from pathlib import Path

#: File, name there, type and name in C++.
CONSTANTS = (
    ("data/arrays.py", "TIE", "double", "tie"),
    ("tree/splits.py", "STOP", "int32_t", "stop_here"),
    ("tree/splits.py", "EVERY_BRANCH", "int32_t", "every_branch"),
    ("tree/apply.py", "_MOST_LABELS", "uint8_t", "most_labels"),
    ("grow/criteria.py", "_NOISE_UNITS", "int64_t", "noise_units"),
    ("grow/criteria.py", "_NOISE_SHIFT", "int", "noise_shift"),
    ("grow/criteria.py", "_MOST_BITS", "int64_t", "most_bits"),
    ("grow/criteria.py", "_RATIO_RESOLUTION", "double", "ratio_resolution"),
    ("grow/criteria.py", "_SQRT_HALF", "double", "sqrt_half"),
    ("grow/categories.py", "ALL_GROUPINGS", "size_t", "all_groupings"),
    ("grow/categories.py", "ALL_MERGERS", "size_t", "all_mergers"),
    ("grow/many_values.py", "_NULL_MEAN", "double", "null_mean"),
    ("grow/many_values.py", "_NULL_SPREAD", "double", "null_spread"),
    ("grow/many_values.py", "_CASES_OF_VALUE", "double", "cases_of_value"),
    ("grow/choose.py", "AVERAGE_SLACK", "double", "average_slack"),
    ("grow/draws.py", "GAMMA", "uint64_t", "draw_gamma"),
    ("grow/draws.py", "MIX_1", "uint64_t", "draw_mix_1"),
    ("grow/draws.py", "MIX_2", "uint64_t", "draw_mix_2"),
    ("grow/draws.py", "CHILD", "uint64_t", "draw_child"),
    ("grow/draws.py", "SPLIT", "uint64_t", "draw_split"),
    ("grow/moments.py", "_BITS", "int", "moment_bits"),
    ("grow/moments.py", "_VARIANCE_BITS", "int", "variance_bits"),
    ("grow/moments.py", "_POISSON_BITS", "int", "poisson_bits"),
    ("grow/moments.py", "_NOISE_UNITS", "int64_t", "moment_noise_units"),
    ("data/exact_sums.py", "SPLITTER", "double", "splitter"),
    ("grow/thresholds.py", "_APART", "double", "apart"),
    ("grow/thresholds.py", "_SIDE_SHARE", "double", "side_share"),
    ("grow/thresholds.py", "_LARGEST_SIDE", "double", "largest_side"),
    ("grow/thresholds.py", "MOST_SURROGATES", "size_t", "most_surrogates"),
    ("grow/thresholds.py", "_FEWEST_CASES", "double", "fewest_surrogate_cases"),
    ("stats.py", "_COUNTED_VALUES", "size_t", "counted_values"),
    ("stats.py", "_LAST_BIT", "double", "tail_last_bit"),
    ("stats.py", "_MOST_STEPS", "int", "most_tail_steps"),
    ("stats.py", "_TINY", "double", "tail_tiny"),
    ("prune/error_based.py", "_COLLAPSE_SLACK", "double", "collapse_slack"),
    ("prune/estimates.py", "_HALVINGS", "int", "halvings"),
    ("prune/estimates.py", "_TERMS", "int", "terms_of_exponential"),
)


def constants_of(source: str) -> dict[str, float]:
    """Return the numbers that a module assigns to names at its top."""
    found = {}
    for statement in ast.parse(source).body:
        if not isinstance(statement, ast.Assign):
            continue
        (target,) = statement.targets[:1]
        code = compile(ast.Expression(statement.value), "<constant>", "eval")
        try:
            value = eval(code, {"__builtins__": {}, "math": math})  # noqa: S307
        except (NameError, TypeError, AttributeError):
            continue  # made of other things than numbers
        if isinstance(target, ast.Name) and isinstance(value, int | float):
            found[target.id] = value
    return found


def header(folder: Path) -> str:
    """Return the header."""
    lines = [
        "// Made by native/constants.py from the sources of the reference.",
        "",
        "#pragma once",
        "",
        "#include <cstddef>",
        "#include <cstdint>",
        "",
        "namespace branchwise {",
        "",
    ]
    for file, name, kind, own in CONSTANTS:
        value = constants_of((folder / file).read_text(encoding="utf-8"))[name]
        text = repr(float(value)) if kind == "double" else str(int(value))
        text += "u" if kind == "uint64_t" else ""
        lines.append(f"constexpr {kind} {own} = {text};  // {name} of {file}")
    return "\n".join([*lines, "", "}  // namespace branchwise", ""])


if __name__ == "__main__":
    output = Path(sys.argv[2])
    output.parent.mkdir(parents=True, exist_ok=True)
    text = header(Path(sys.argv[1]))
    # A file with a new date would have every source compiled again.
    if not output.exists() or output.read_text(encoding="utf-8") != text:
        output.write_text(text, encoding="utf-8")
