{#- The query of a tree that divides cases, or of an ensemble, filled in by export/sql.py.
    Every step reads the last one: the distinct cases; those that add up what ends or
    trees predict; then the labels.

    Without DISTINCT, engines put the expressions of a step wherever the next ones use its
    columns, again and again. Cases are distinct anyhow. -#}
{% set distinct = "DISTINCT " if dialect.keep == "AS" else "" %}
{% set one, zero = number(1.0), number(0.0) %}
{% set sums, carried = names.probabilities or [names.prediction], names.carried %}
{% set whole = [] if plan.is_regression or plan.trees else [steps.whole] %}
{% set then = ",\n    " %}

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
WITH {{ adding.table }}{{ steps.cases }} {{ dialect.keep }} (
  SELECT DISTINCT {% for column in names.compared %}{{ column }} AS {{ carried[loop.index0] }}{{ "" if loop.last else then }}{% else %}1 AS {{ steps.whole }}{% endfor %}

  FROM {{ names.table }}
{% if rejected %}
  WHERE CASE WHEN {{ rejected|join(" OR ") }} THEN 0 ELSE 1 END = 1
{% endif %}
)
{%- set step = namespace(last=adding.last, kept=carried + sums + whole) %}
{{ adding.text -}}
{% if plan.link %}
{{ linked(adding.outputs, step.last) }}
{%- set step.last = steps.linked %}
{% endif %}
{% if plan.classes %}
{% if costs is not none %},
{{ steps.with_scores }} {{ dialect.keep }} (
  SELECT {{ distinct }}{{ step.kept|join(then) }}
{%- for name in steps.scores %}{{ then }}{{ cost(sums, loop.index0) }} AS {{ name }}{% endfor %}

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
  SELECT {{ distinct }}{{ carried|join(then) }}{{ then if carried }}{{ first_best(steps.scores, steps.best, labels, steps.whole if whole else "") }} AS {{ names.prediction }}{{ then }}{{ sums|join(then) }}
  FROM {{ steps.with_best }}
)
{%- set step.last = steps.labelled %}
{% endif %}

SELECT {{ names.table }}.*,
  {%+ for name in [names.prediction] + names.probabilities %}{{ step.last }}.{{ name }}{{ "" if loop.last else ", " }}{% endfor %}

FROM {{ names.table }}
LEFT JOIN {{ step.last }} ON {% for field in plan.fields -%}
{{ "" if loop.first else "\n  AND " }}{{ dialect.same.format(names.compared[loop.index0], step.last + "." + carried[loop.index0], nothing(field)) }}
{%- else %}1 = 1{% endfor %}
