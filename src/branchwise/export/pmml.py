"""Export to PMML 4.4: a TreeModel with predicates for missing and unseen values.

No strategy of an evaluator is relied on but two: a comparison with a missing value is
not true, and where no branch is true the node itself predicts. The predicates are made
of single comparisons, because the quoting of PMML's arrays is read in different ways.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from collections.abc import Iterator, Sequence

from branchwise.data.table_schema import Value
from branchwise.errors import ExportError
from branchwise.export.base import UNANSWERED, Options, Target, program_runner
from branchwise.export.plan import Field, Plan, PlanSplit
from branchwise.text.as_html import markup, page
from branchwise.tree.splits import AT_MOST, EVERY_BRANCH

_TYPES = {"text": "string", "boolean": "boolean", "number": "double"}
#: Readers of XML nest as deep as their stack allows.
_DEEPEST = 200
#: What XML cannot hold, however it is written.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(plan: Plan, options: Options) -> bytes:
    """Write the model."""
    _reject(plan, options)
    node, *outputs = _output_names(plan)
    written = page(
        "export/templates/tree.pmml",
        about=_attribute(plan.about),
        columns=list(_columns(plan)),
        unseen="returnInvalid" if plan.rejects_unseen else "asIs",
        missing="returnInvalid" if plan.rejects_missing else "asIs",
        node=_attribute(node),
        outputs=[
            (_attribute(name), [repr(n.probabilities[code]) for n in plan.nodes])
            for code, name in enumerate(outputs)
        ],
        nodes=map(markup, _nodes(plan)),
    )
    return written.encode()


def _reject(plan: Plan, options: Options) -> None:
    """Reject trees that PMML cannot represent."""
    if plan.divides and options["divided"] != UNANSWERED:
        raise ExportError(
            "PMML has no way to share a case out among branches that gives the very "
            "same probabilities in every evaluator. Fit with another missing and "
            "unseen policy than 'split', or leave such cases without a prediction "
            "with the option divided='unanswered'."
        )
    depth = max(plan.depths)
    if depth > _DEEPEST:
        raise ExportError(
            f"This tree is {depth:,} levels deep, and programs that read PMML may "
            f"not nest more than {_DEEPEST}. Prune it, or export to another target."
        )
    values = [value for field in plan.fields for value in field.values]
    for text in [plan.target, *(f.name for f in plan.fields), *values, *plan.classes]:
        if isinstance(text, str) and _NOT_XML.search(text):
            raise ExportError(
                f"XML, and so PMML, cannot hold the character "
                f"{_NOT_XML.findall(text)[0]!a} of {text!a}. Rename it before fitting."
            )
    if "" in (plan.target, *(field.name for field in plan.fields)):
        raise ExportError("A column of a PMML file needs a name. Got ''; rename it.")


def _quoted(value: object) -> str:
    """Write an attribute's value."""
    return '"' + "".join(map(_escaped, _plain(value))) + '"'


def _attribute(value: object) -> str:
    """Write an attribute's value for the template, which leaves it as it is."""
    return markup(_quoted(value))


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, (int, float)) else str(value)


def _escaped(character: str) -> str:
    if character in "&<>\"'\t\n\r" or not character.isprintable():
        return f"&#{ord(character)};"
    return character


def _target_name(plan: Plan) -> str:
    """Return the name of the target, which no column has."""
    name = plan.target
    while name in {field.name for field in plan.fields}:
        name += "_"
    return name


def _columns(plan: Plan) -> Iterator[tuple[str, str, str, list[str]]]:
    """Yield name, kind, type and values of the columns, then of the target."""
    for field in plan.fields:
        kind = "continuous" if field.numeric else "categorical"
        values = [*map(_attribute, field.values)]
        yield _attribute(field.name), kind, _TYPES[field.kind], values
    target, classes = _attribute(_target_name(plan)), [*map(_attribute, plan.classes)]
    if plan.is_regression:
        yield target, "continuous", "double", []
    else:
        yield target, "categorical", _class_type(plan), classes


def _class_type(plan: Plan) -> str:
    first = plan.classes[0]
    if isinstance(first, bool):
        return "boolean"
    if isinstance(first, str):
        return "string"
    whole = all(isinstance(label, int) for label in plan.classes)
    return "integer" if whole else "double"


def _output_names(plan: Plan) -> list[str]:
    """Return what the node and the probabilities are called: no two alike."""
    taken = {field.name for field in plan.fields} | {_target_name(plan)}
    names = []
    for name in ("node", *(f"probability({_plain(label)})" for label in plan.classes)):
        while name in taken:
            name += "_"
        taken.add(name)
        names.append(name)
    return names


def _nodes(plan: Plan) -> Iterator[str]:
    """Yield the nodes, each within its parent."""
    stack: list[int | str] = [0]
    while stack:
        entry = stack.pop()
        if isinstance(entry, str):
            yield entry
            continue
        node = plan.nodes[entry]
        yield f'  <Node id="{entry}" score={_quoted(_score(plan, entry))}>'
        yield _condition(plan, entry)
        for label, probability in zip(plan.classes, node.probabilities, strict=False):
            share = repr(probability)
            yield (
                f"  <ScoreDistribution value={_quoted(label)} "
                f'recordCount="{share}" probability="{share}"/>'
            )
        stack.append("  </Node>")
        if node.split is not None:
            width = len(node.split.branches)
            stack += [node.child(b) for b in reversed(range(width))]
            if node.split.divides:
                yield _without_prediction(plan, node.split, entry)


def _score(plan: Plan, position: int) -> Value:
    node = plan.nodes[position]
    return plan.classes[node.label] if node.number is None else node.number


def _without_prediction(plan: Plan, split: PlanSplit, position: int) -> str:
    """Return a branch without a score, for cases that the model would divide."""
    field = plan.fields[split.field]
    terms = []
    if split.missing_to == EVERY_BRANCH:
        terms.append(_is_missing(field))
    if split.unseen_to == EVERY_BRANCH and not field.numeric:
        terms.append(_is_unseen(field))
    return f'  <Node id="divided {position}">{_any(terms)}</Node>'


def _condition(plan: Plan, position: int) -> str:
    """Return the predicate that leads to a node."""
    parent = plan.parents[position]
    if parent < 0:
        return _all(list(_looked_at(plan)))
    split, branch = plan.split_of(parent), position - plan.nodes[parent].first_child
    field = plan.fields[split.field]
    terms = _met(field, split, branch)
    if split.surrogates:
        terms.append(_stand_in(plan, split, branch))
    elif split.missing_to == branch:
        terms.append(_is_missing(field))
    if split.unseen_to == branch and not field.numeric:
        terms.append(_is_unseen(field))
    return _any(terms)


def _looked_at(plan: Plan) -> Iterator[str]:
    """Yield what is true of every field, if only it is looked at.

    Evaluators check a field when they first need it, and the model checks all.
    """
    if plan.rejects_missing or plan.rejects_unseen:
        for field in plan.fields:
            yield _any([_is_missing(field), _is_known(field)])


def _met(field: Field, split: PlanSplit, branch: int) -> list[str]:
    """Return the comparisons of which one must be true for a known value."""
    codes = split.branches[branch]
    if not field.numeric:
        return [_compared(field, "equal", field.values[code]) for code in codes]
    if len(codes) > 1:
        return [_is_known(field)]
    side = "lessOrEqual" if codes == (AT_MOST,) else "greaterThan"
    return [_compared(field, side, split.threshold)] if codes else []


def _compared(field: Field, operator: str, value: object) -> str:
    if value == 0 and field.kind == "number" and operator == "equal":
        # To some programs the two zeros are different values.
        both = [_predicate(field, operator, zero) for zero in ("0.0", "-0.0")]
        return _any(both)
    return _predicate(field, operator, value)


def _predicate(field: Field, operator: str, value: object) -> str:
    name = _quoted(field.name)
    what = f'operator="{operator}" value={_quoted(value)}'
    return f"<SimplePredicate field={name} {what}/>"


def _is_missing(field: Field) -> str:
    return f'<SimplePredicate field={_quoted(field.name)} operator="isMissing"/>'


def _is_known(field: Field) -> str:
    return f'<SimplePredicate field={_quoted(field.name)} operator="isNotMissing"/>'


def _is_unseen(field: Field) -> str:
    values: list[object] = list(field.values)
    if field.kind == "number" and 0 in values:
        values = [value for value in values if value != 0] + ["0.0", "-0.0"]
    return _all([_predicate(field, "notEqual", value) for value in values])


def _stand_in(plan: Plan, split: PlanSplit, branch: int) -> str:
    """Return what must be true for surrogates to send a case down a branch."""
    last = ["<True/>"] if split.missing_to == branch else ["<False/>"]
    decided = _any(last)
    for surrogate in reversed(split.surrogates):
        field = plan.fields[surrogate.field]
        silent = [_is_missing(field)]
        if not field.numeric:
            known = set(surrogate.branch_of)
            codes = set(range(len(field.values)))
            silent += [
                _compared(field, "equal", field.values[code])
                for code in sorted(codes - known)
            ]
            silent.append(_is_unseen(field))
        mine = _met(field, surrogate, branch)
        decided = _any([*mine, _all([_any(silent), decided])])
    return _all([_is_missing(plan.fields[split.field]), decided])


def _any(terms: Sequence[str]) -> str:
    return _joined("or", terms) if terms else "<False/>"


def _all(terms: Sequence[str]) -> str:
    return _joined("and", terms) if terms else "<True/>"


def _joined(operator: str, terms: Sequence[str]) -> str:
    if len(terms) == 1:
        return terms[0]
    inner = "".join(terms)
    return (
        f'<CompoundPredicate booleanOperator="{operator}">{inner}</CompoundPredicate>'
    )


def _absent() -> str | None:
    if importlib.util.find_spec("jpmml_evaluator") is None:
        return "there is no jpmml_evaluator here (pip install jpmml_evaluator[jpype])"
    if shutil.which("java") is None:
        return "there is no Java here (java)"
    return None


_EVALUATOR = program_runner(
    "JPMML-Evaluator",
    lambda plan: [sys.executable, "pmml_driver.py", "tree.pmml", _target_name(plan)],
    "pmml_driver.py.txt",
    "tree.pmml",
    _absent,
)
TARGET = Target(
    "pmml",
    ".pmml",
    write,
    lambda _: [_EVALUATOR],
    {"divided": ("refused", UNANSWERED)},
)
