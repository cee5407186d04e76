{# The counts of some columns by node and class: ``spans`` has the keys of each column. #}

{% macro upper_half(name) %}
{# The upper half of the bits of a number: see data/exact_sums.py. #}
(134217729.0e0 * {{ name }}) - ((134217729.0e0 * {{ name }}) - {{ name }}) AS {{ name }}h
{%- endmacro %}

{% macro rest(product, a, b) %}
{# The exact rounding error of the product of two numbers. #}
((({{ a }}h * {{ b }}h - {{ product }}) + {{ a }}h * {{ b }}l) + {{ a }}l * {{ b }}h) + {{ a }}l * {{ b }}l AS {{ product }}r
{%- endmacro %}

{% macro limb(names, step, above) %}
{# A limb of the sum of terms: what is left of each above, rounded to the step. #}
{% for name in names %}
    {{ "+" if not loop.first }} (({{ binder.nearest(name, step) }})
    {% if above %} - ({{ binder.nearest(name, above) }}) {% endif %})
{% endfor %}
{%- endmacro %}

WITH {{ steps }}
{% if groups.scale %}
    {# The exact terms of numbers v and of their squares, times weights, each once. #}
    {% set numbers, squares = ["v"], ["q", "qr"] %}
    "branchwise terms 0" AS MATERIALIZED (SELECT *, {{ upper_half("v") }} FROM {{ rows }} AS rows),
    "branchwise terms 1" AS MATERIALIZED (SELECT *, v - vh AS vl, v * v AS q FROM "branchwise terms 0" AS rows),
    "branchwise terms 2" AS MATERIALIZED (SELECT *, {{ rest("q", "v", "v") }} FROM "branchwise terms 1" AS rows),
    {% set rows = '"branchwise terms 2"' %}
    {% if writer.has_weight %}
        {% set numbers, squares = ["p", "pr"], ["s", "sr", "t", "tr"] %}
        "branchwise terms 3" AS MATERIALIZED (
            SELECT *, {{ upper_half("w") }}, {{ upper_half("q") }}, {{ upper_half("qr") }}
            FROM "branchwise terms 2" AS rows
        ),
        "branchwise terms 4" AS MATERIALIZED (
            SELECT *, w - wh AS wl, q - qh AS ql, qr - qrh AS qrl, w * v AS p, w * q AS s, w * qr AS t
            FROM "branchwise terms 3" AS rows
        ),
        "branchwise terms 5" AS MATERIALIZED (
            SELECT *, {{ rest("p", "w", "v") }}, {{ rest("s", "w", "q") }}, {{ rest("t", "w", "qr") }}
            FROM "branchwise terms 4" AS rows
        ),
        {% set rows = '"branchwise terms 5"' %}
    {% endif %}
{% endif %}
"branchwise counted" {{ dialect.keep_rows }} (
    SELECT
    {% set group = "node * " ~ groups.width ~ " + " ~ ("1" if groups.n_classes is none else "y + 1") %}
    {% for span in spans %}
        {% if span.by_number %}
            {{ span.first }} + {{ group }} AS {{ span.key }}, {{ span.code }} AS {{ span.number }},
        {% else %}
            {{ span.first }} + ({{ group }}) * {{ span.width }} + {{ span.code }} + 1 AS {{ span.key }},
        {% endif %}
    {% endfor %}
    {{ "k" if writer.has_case else "1" }} AS cases
    {% if groups.scale or writer.has_weight %}
        , {{ "w" if writer.has_weight else "1e0" }} AS weight
    {% endif %}
    {% if groups.scale %}
        {% for name, terms, limbs in [("total", numbers, groups.scale.sums), ("square", squares, groups.scale.squares)] %}
            {% for step in limbs.steps %}
                , {{ limb(terms, step, loop.previtem | default(none)) }} AS {{ name }}{{ loop.index0 }}
            {% endfor %}
        {% endfor %}
    {% endif %}
    FROM {{ rows }} AS rows
)
{% if dialect.grouping_sets %}
    {# Names of their own: DuckDB returns columns by name. #}
    SELECT {{ coalesced(spans | map(attribute="key")) }} AS r0
    , {{ coalesced(spans | selectattr("by_number") | map(attribute="number")) or "CAST(NULL AS " ~ dialect.types.f ~ ")" }} AS r1
    {% for sum in sums %}
        , {{ sum }} AS r{{ loop.index + 1 }}
    {% endfor %}
    FROM "branchwise counted" AS keyed
    GROUP BY GROUPING SETS (
    {% for span in spans %}
        ({{ span.key }}{{ ", " ~ span.number if span.by_number }}){{ "," if not loop.last }}
    {% endfor %}
    )
{% else %}
    {% for span in spans %}
        {{ "UNION ALL" if not loop.first }}
        SELECT {{ span.key }}, {{ span.number if span.by_number else "NULL" }}, {{ sums | join(", ") }}
        FROM "branchwise counted" GROUP BY {{ span.key }}{{ ", " ~ span.number if span.by_number }}
    {% endfor %}
{% endif %}
