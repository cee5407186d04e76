{#- The query of a tree that divides cases, or of an ensemble, filled in by export/sql.py. Every step reads
    the last one: the distinct cases; for each block of ends the branches that a case
    takes, its share of every end, and the sums so far; then the labels.

    Without DISTINCT, engines put the expressions of a step wherever the next ones use its
    columns, again and again. Cases are distinct anyhow. -#}
{% set distinct = "DISTINCT " if dialect.keep == "AS" else "" %}
{% set one, zero = number(1.0), number(0.0) %}
{% set sums, carried = names.probabilities or [names.prediction], names.carried %}
{% set whole = [] if plan.is_regression or ensemble else [steps.whole] %}
{% set then = ",\n    " %}

{#- The product of the shares that the splits on a path give a case. #}
{% macro share(end, outcome) %}
{% for node, branch in end.way %}
{% set split = plan.split_of(node) %}
{{ "" if loop.first else " * " }}CASE {{ outcome[node] }} WHEN {{ branch }} THEN {{ one }}
{%- if split.divides and branch != STOP %} WHEN {{ EVERY_BRANCH }} THEN {{ number(split.shares[branch]) }}{% endif %} ELSE {{ zero }} END
{%- else %}
{{ one }}
{%- endfor %}
{% endmacro %}

{#- 1 where a fractional case has all its weight at one end. #}
{% macro is_fractional(way, outcome) %}
CASE WHEN {% for node, _ in way %}{{ "" if loop.first else " OR " }}{{ outcome[node] }} = {{ EVERY_BRANCH }}{% endfor %} THEN 1 ELSE 0 END
{%- endmacro %}

{#- The sum so far plus the terms of these ends, without those of 0. #}
{% macro sum(before, code, block) %}
{{ before }}
{%- for end in block.ends %}
{% set node = plan.nodes[end.position] %}
{% set amount = node.probabilities[code] if node.number is none else node.number %}
{% if amount %} + ({{ number(amount) }}) * {{ block.share[end.position] }}{% endif %}
{% endfor %}
{% endmacro %}

{#- The label of the end that a case has come to as a whole. #}
{% macro label(before, block) %}
CASE {% for end in block.ends -%}
WHEN {{ block.share[end.position] }} = {{ one }}
{%- if end.position in block.whole %} AND {{ block.whole[end.position] }} = 0{% endif %} THEN {{ value(plan.classes[plan.nodes[end.position].label]) }} {% endfor -%}
ELSE {{ before }} END
{%- endmacro %}

{% macro cost(predicted) %}
-({{ zero }}{% for row in costs %} + {{ sums[loop.index0] }} * ({{ number(row[predicted]) }}){% endfor %})
{%- endmacro %}

{% macro greatest(scores) %}
{% if scores|length == 1 %}
{{ scores[0] }}
{%- elif dialect.greatest %}
{{ dialect.greatest }}({{ scores|join(", ") }})
{%- else %}
CASE {% for score in scores[:-1] %}WHEN {% for other in scores[loop.index:] %}{{ score }} >= {{ other }}{{ "" if loop.last else " AND " }}{% endfor %} THEN {{ score }} {% endfor %}ELSE {{ scores[-1] }} END
{%- endif %}
{% endmacro %}

{#- PostgreSQL rejects exponentials that are nearly 0. #}
{% macro power(of) %}
CASE WHEN {{ of }} < {{ number(-700.0) }} THEN {{ zero }} ELSE EXP({{ of }}) END
{%- endmacro %}

{#- A step that selects the columns of cases and others. #}
{% macro step_of(name, last, columns) %}
,
{{ name }} {{ dialect.keep }} (
  SELECT {{ distinct }}{{ (carried + columns)|join(then) }}
  FROM {{ last }}
)
{%- endmacro %}

{#- The steps from sums over trees to predictions. #}
{% macro linked(margins, last) %}
{% set powers, power_of = [], steps.power %}
{% if plan.link == "exp" %}
{{ step_of(steps.linked, last, [power(margins[0]) ~ " AS " ~ sums[0]]) }}
{%- elif plan.link == "logistic" %}
{% set small = power_of[0] %}
{{ step_of(steps.powers, last, margins + [power("-ABS(" ~ margins[0] ~ ")") ~ " AS " ~ small]) }}
{%- set likelier, other = one ~ " / (" ~ one ~ " + " ~ small ~ ")", small ~ " / (" ~ one ~ " + " ~ small ~ ")" %}
{% set chosen = "CASE WHEN " ~ margins[0] ~ " >= " ~ zero ~ " THEN " %}
{{ step_of(steps.linked, steps.powers, [
    chosen ~ other ~ " ELSE " ~ likelier ~ " END AS " ~ sums[0],
    chosen ~ likelier ~ " ELSE " ~ other ~ " END AS " ~ sums[1]]) }}
{%- else %}
{{ step_of(steps.tops, last, margins + [greatest(margins) ~ " AS " ~ steps.top]) }}
{%- for margin in margins %}
{% set _ = powers.append(power(margin ~ " - " ~ steps.top) ~ " AS " ~ power_of[loop.index0]) %}
{% endfor %}
{{ step_of(steps.powers, steps.tops, powers) }}
{%- set total, shares = " / (" ~ power_of|join(" + ") ~ ")", [] %}
{% for power in power_of %}
{% set _ = shares.append(power ~ total ~ " AS " ~ sums[loop.index0]) %}
{% endfor %}
{{ step_of(steps.linked, steps.powers, shares) }}
{%- endif %}
{% endmacro %}
WITH {% if ensemble %}{{ ensemble.table }} {{ ensemble.values }},
{% endif %}
{{ steps.cases }} {{ dialect.keep }} (
  SELECT DISTINCT {% for column in names.compared %}{{ column }} AS {{ carried[loop.index0] }}{{ "" if loop.last else then }}{% else %}1 AS {{ steps.whole }}{% endfor %}

  FROM {{ names.table }}
{% if rejected %}
  WHERE CASE WHEN {{ rejected|join(" OR ") }} THEN 0 ELSE 1 END = 1
{% endif %}
)
{%- set step = namespace(last=steps.cases, kept=carried) %}
{% for block in blocks %},
{{ block.outcomes }} {{ dialect.keep }} (
  SELECT {{ distinct }}{{ step.kept|join(then) }}
{%- for node, outcome in block.outcome.items() %}{{ then }}{{ wording.branch(plan.split_of(node)) }} AS {{ outcome }}{% endfor %}

  FROM {{ step.last }}
),
{{ block.shares }} {{ dialect.keep }} (
  SELECT {{ distinct }}{{ step.kept|join(then) }}
{%- for end in block.ends %}{{ then }}{{ share(end, block.outcome) }} AS {{ block.share[end.position] }}{% endfor %}
{% for end in block.ends if end.position in block.whole %}{{ then }}{{ is_fractional(block.undivided[end.position], block.outcome) }} AS {{ block.whole[end.position] }}{% endfor %}

  FROM {{ block.outcomes }}
),
{{ block.sums }} {{ dialect.keep }} (
  SELECT {{ distinct }}{{ carried|join(then) }}
{%- set first = loop.first %}
{% for name in sums %}{{ then }}{{ sum(zero if first else name, loop.index0, block) }} AS {{ name }}{% endfor %}
{% for name in whole %}{{ then }}{{ label("NULL" if first else name, block) }} AS {{ name }}{% endfor %}

  FROM {{ block.shares }}
)
{%- set step.last = block.sums %}
{% set step.kept = carried + sums + whole %}
{% endfor %}
{% if ensemble %}
{% for sums_of_step in ensemble.sums %},
{{ sums_of_step.name }} {{ dialect.keep }} (
{{ sums_of_step.text }}
)
{%- set step.last = sums_of_step.name %}
{% endfor %}
{% set step.kept = carried + sums %}
{% if plan.link %}
{{ linked(ensemble.outputs, step.last) }}
{%- set step.last = steps.linked %}
{% endif %}
{% endif %}
{% if plan.classes %}
{% if costs is not none %},
{{ steps.with_scores }} {{ dialect.keep }} (
  SELECT {{ distinct }}{{ step.kept|join(then) }}
{%- for name in steps.scores %}{{ then }}{{ cost(loop.index0) }} AS {{ name }}{% endfor %}

  FROM {{ step.last }}
)
{%- set step.last = steps.with_scores %}
{% set step.kept = step.kept + steps.scores %}
{% endif %},
{{ steps.with_best }} {{ dialect.keep }} (
  SELECT {{ distinct }}{{ step.kept|join(then) }}{{ then }}{{ greatest(steps.scores) }} AS {{ steps.best }}
  FROM {{ step.last }}
),
{{ steps.labelled }} {{ dialect.keep }} (
  SELECT {{ distinct }}{{ carried|join(then) }}{{ then if carried }}CASE{% if whole %} WHEN {{ steps.whole }} IS NOT NULL THEN {{ steps.whole }}{% endif %}

{%- for score in steps.scores[:-1] %} WHEN {{ score }} >= {{ steps.best }} - ABS({{ steps.best }}) * ({{ number(tie) }}) THEN {{ value(plan.classes[loop.index0]) }}{% endfor %} ELSE {{ value(plan.classes[-1]) }} END AS {{ names.prediction }}{{ then }}{{ sums|join(then) }}
  FROM {{ steps.with_best }}
)
{%- set step.last = steps.labelled %}
{% endif %}

SELECT {{ names.table }}.*,
  {%+ for name in [names.prediction] + names.probabilities %}{{ step.last }}.{{ name }}{{ "" if loop.last else ", " }}{% endfor %}

FROM {{ names.table }}
LEFT JOIN {{ step.last }} ON {% for field in plan.fields -%}
{{ "" if loop.first else "\n  AND " }}{{ dialect.same.format(names.compared[loop.index0], step.last + "." + carried[loop.index0], value(nothing[field.kind])) }}
{%- else %}1 = 1{% endfor %}
