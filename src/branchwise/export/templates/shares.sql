{#- Steps that add up what the ends of a tree predict, filled in by export/sql_query.py:
    for each block of ends the branches that a case takes, its share of every end, and the
    sums so far. -#}
{% set number, value, keep = dialect.number, dialect.value, dialect.keep %}
{% set one, zero, then = number(1.0), number(0.0), ",\n    " %}

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
{% set step = namespace(last=last, kept=carried) %}
{% for block in blocks %},
{{ block.outcomes }} {{ keep }} (
  SELECT {{ distinct }}{{ step.kept|join(then) }}
{%- for node, outcome in block.outcome.items() %}{{ then }}{{ wording.branch(plan.split_of(node)) }} AS {{ outcome }}{% endfor %}

  FROM {{ step.last }}
),
{{ block.shares }} {{ keep }} (
  SELECT {{ distinct }}{{ step.kept|join(then) }}
{%- for end in block.ends %}{{ then }}{{ share(end, block.outcome) }} AS {{ block.share[end.position] }}{% endfor %}
{% for end in block.ends if end.position in block.whole %}{{ then }}{{ is_fractional(block.undivided[end.position], block.outcome) }} AS {{ block.whole[end.position] }}{% endfor %}

  FROM {{ block.outcomes }}
),
{{ block.sums }} {{ keep }} (
  SELECT {{ distinct }}{{ carried|join(then) }}
{%- set first = loop.first %}
{% for name in sums %}{{ then }}{{ sum(zero if first else name, loop.index0, block) }} AS {{ name }}{% endfor %}
{% for name in whole %}{{ then }}{{ label("NULL" if first else name, block) }} AS {{ name }}{% endfor %}

  FROM {{ block.shares }}
)
{%- set step.last = block.sums %}
{% set step.kept = carried + sums + whole %}
{% endfor %}
