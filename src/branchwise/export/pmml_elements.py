"""Elements of PMML: nodes within nodes, predicates that lead to them, expressions.

No strategy of an evaluator is relied on but two: a comparison with a missing value is
not true, and where no branch is true the node itself predicts. The predicates are made
of single comparisons, because the quoting of PMML's arrays is read in different ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from branchwise.data.table_schema import Value
from branchwise.export.dates import first_above, moment_of_cell
from branchwise.export.plan import Field, Plan, PlanSplit
from branchwise.text.as_html import markup
from branchwise.tree.splits import AT_MOST, EVERY_BRANCH


def quoted(value: object) -> str:
    """Write an attribute's value."""
    return '"' + "".join(map(_escaped, plain(value))) + '"'


def attribute(value: object) -> str:
    """Write an attribute's value for the template, which leaves it as it is."""
    return markup(quoted(value))


def plain(value: object) -> str:
    """Return a value as PMML has it, without quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, (int, float)) else str(value)


def _escaped(character: str) -> str:
    if character in "&<>\"'\t\n\r" or not character.isprintable():
        return f"&#{ord(character)};"
    return character


def nodes(plan: Plan, with_distributions: bool = True) -> Iterator[str]:
    """Yield the nodes, each within its parent."""
    stack: list[int | str] = [0]
    while stack:
        entry = stack.pop()
        if isinstance(entry, str):
            yield entry
            continue
        node = plan.nodes[entry]
        yield f'  <Node id="{entry}" score={quoted(_score(plan, entry))}>'
        yield _condition(plan, entry)
        shares = node.probabilities if with_distributions else ()
        for label, probability in zip(plan.classes, shares, strict=False):
            share = repr(probability)
            yield (
                f"  <ScoreDistribution value={quoted(label)} "
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
        return all_of(list(_looked_at(plan)))
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
        for field in plan.inputs:
            yield _any([_is_missing(field), is_known(field)])


def met(field: Field, split: PlanSplit, branch: int) -> str:
    """Return the predicate that a known value goes down a branch."""
    return _any(_met(field, split, branch))


def _met(field: Field, split: PlanSplit, branch: int) -> list[str]:
    """Return the comparisons of which one must be true for a known value."""
    codes = split.branches[branch]
    if not field.numeric:
        return [_compared(field, "equal", field.values[code]) for code in codes]
    if len(codes) > 1:
        return [is_known(field)]
    if codes and field.date is not None:
        side = "lessThan" if codes == (AT_MOST,) else "greaterOrEqual"
        first = first_above(field.date, split.threshold or 0.0)
        return [_compared(field, side, iso_date(field, first))]
    side = "lessOrEqual" if codes == (AT_MOST,) else "greaterThan"
    return [_compared(field, side, split.threshold)] if codes else []


def iso_date(field: Field, text: str) -> str:
    """Return a date, or a time, as PMML has it: ``2024-03-05T14:30:00``."""
    if field.date is None or field.date.unit == "day":
        return text[:10]
    moment = moment_of_cell(field.date, text)
    return "" if moment is None else moment.isoformat()


def _compared(field: Field, operator: str, value: object) -> str:
    if value == 0 and field.kind == "number" and operator == "equal":
        # To some programs the two zeros are different values.
        both = [_predicate(field, operator, zero) for zero in ("0.0", "-0.0")]
        return _any(both)
    return _predicate(field, operator, value)


def _predicate(field: Field, operator: str, value: object) -> str:
    name = quoted(field.name)
    what = f'operator="{operator}" value={quoted(value)}'
    return f"<SimplePredicate field={name} {what}/>"


def _is_missing(field: Field) -> str:
    return f'<SimplePredicate field={quoted(field.name)} operator="isMissing"/>'


def is_known(field: Field | str) -> str:
    """Return the predicate that a column, or the field of a name, has a value."""
    name = field if isinstance(field, str) else field.name
    return f'<SimplePredicate field={quoted(name)} operator="isNotMissing"/>'


def _is_unseen(field: Field) -> str:
    values: list[object] = list(field.values)
    if field.kind == "number" and 0 in values:
        values = [value for value in values if value != 0] + ["0.0", "-0.0"]
    return all_of([_predicate(field, "notEqual", value) for value in values])


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
        decided = _any([*mine, all_of([_any(silent), decided])])
    return all_of([_is_missing(plan.fields[split.field]), decided])


def _any(terms: Sequence[str]) -> str:
    return _joined("or", terms) if terms else "<False/>"


def all_of(terms: Sequence[str]) -> str:
    """Return the predicate that is true if all terms are."""
    return _joined("and", terms) if terms else "<True/>"


def _joined(operator: str, terms: Sequence[str]) -> str:
    if len(terms) == 1:
        return terms[0]
    inner = "".join(terms)
    return (
        f'<CompoundPredicate booleanOperator="{operator}">{inner}</CompoundPredicate>'
    )


def apply(function: str, *arguments: str) -> str:
    """Return the expression of a function of PMML."""
    return f"<Apply function={quoted(function)}>{''.join(arguments)}</Apply>"


def field_ref(name: str) -> str:
    """Return the expression of a field."""
    return f"<FieldRef field={quoted(name)}/>"


def constant(number: float) -> str:
    """Return the expression of a number."""
    return f'<Constant dataType="double">{number!r}</Constant>'


def looked_up(node: str, numbers: Sequence[float]) -> str:
    """Return the expression of a number by node, whose field is given."""
    rows = "".join(
        f"<row><node>{position}</node><number>{number!r}</number></row>"
        for position, number in enumerate(numbers)
    )
    return (
        '<MapValues outputColumn="number" dataType="double">'
        f'<FieldColumnPair field={quoted(node)} column="node"/>'
        f"<InlineTable>{rows}</InlineTable></MapValues>"
    )
