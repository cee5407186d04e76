{# The steps that move rows down by joins with the routes of the nodes of each level. #}

{% macro split_code(columns, turn) -%}
    {# The code of a row in the column that its node splits on. #}
    {% if not columns %}
    0
    {%- else %}
    CASE rows.column{{ turn }}
    {% for attribute in columns %}
        WHEN {{ attribute.index }} THEN
        {% if attribute.is_numeric %}
            CASE WHEN {{ attribute.missing }} THEN {{ NUMBER_MISSING }}
            WHEN {{ attribute.name }} > rows.threshold{{ turn }} THEN {{ ABOVE }} ELSE {{ AT_MOST }} END
        {% else %}
            {{ attribute.name }}
        {% endif %}
    {% endfor %}
    ELSE 0 END
    {%- endif %}
{%- endmacro %}

{% macro fraction(name, step, divides) -%}
    {# The weight or the case of a row, or of a fraction of it. #}
    {% if divides %}
    CASE WHEN r0.share IS NULL THEN rows.{{ name }}
    ELSE {{ binder.on_grid("rows." ~ name ~ " * r0.share", step) }} END AS {{ name }}
    {%- else %}
    rows.{{ name }}
    {%- endif %}
{%- endmacro %}

{% for level in levels %}
{% set number = loop.index0 %}
{% set rows = '"branchwise level ' ~ (number - 1) ~ '"' if number else start %}
{% if level.splits %}
    {# The rows do not have the splits of their nodes yet. #}
    {% if level.n_nodes > 1 %}
"branchwise splits {{ number }}" (node, {{ level.splits | join(", ") }})
AS ({{ binder.relation([level.nodes] + level.splits.values() | list) }}),
    {% endif %}
"branchwise splitting {{ number }}" AS (
    SELECT rows.*
    {% for name, (kind, values) in level.splits.items() %}
        , {% if level.n_nodes > 1 %}splits.{{ name }}{% else %}{{ binder.constant(kind, values[0]) }} AS {{ name }}{% endif %}
    {% endfor %}
    FROM {{ rows }} AS rows
    {% if level.n_nodes > 1 %}
    {{ dialect.forced }} "branchwise splits {{ number }}" AS splits ON splits.node = rows.node
    {% endif %}
),
    {% set rows = '"branchwise splitting ' ~ number ~ '"' %}
{% endif %}
{% for routes in level.routes %}
"branchwise routes {{ number }} {{ loop.index0 }}" ({{ routes | join(", ") }})
AS ({{ binder.relation(routes.values()) }}),
{% endfor %}
"branchwise level {{ number }}" {{ dialect.keep_rows if level.is_kept else "AS" }} (
    {{ "SELECT * FROM (" if level.step.has_surrogates or level.step.divides }}
        SELECT
        {% if level.step.has_surrogates %}
            CASE WHEN r0.child = {{ SPLIT_OTHERS }} THEN {{ level.last_child }} ELSE r0.child END AS node
        {% else %}
            r0.child AS node
        {% endif %}
        {% for name in writer.carried %}
            , rows.{{ name }}
        {% endfor %}
        {% if writer.has_weight %}
            , {{ fraction("w", writer.plan.grid.step, level.step.divides) }}
        {% endif %}
        {% if writer.has_case %}
            , {{ fraction("k", writer.plan.grid.case_step, level.step.divides) }}
        {% endif %}
        {% for name in level.further %}
            , r0.{{ name }}
        {% endfor %}
        FROM {{ rows }} AS rows
        {% for columns in level.columns %}
            {{ "LEFT JOIN" if loop.index0 else dialect.forced }} "branchwise routes {{ number }} {{ loop.index0 }}" AS r{{ loop.index0 }}
            ON r{{ loop.index0 }}.way = rows.node * {{ stride }} + {{ split_code(columns, loop.index0) }}
        {% endfor %}
    {% if level.step.has_surrogates %}
    ) AS moved WHERE node >= 0 {{ "AND w > 0" if level.step.divides }}
    {% elif level.step.divides %}
    ) AS moved WHERE w > 0
    {% endif %}
),
{% endfor %}
