{# The steps that move rows down by expressions: ``paths`` has the name of each step,
   that of the rows it starts from, and the expression for the node. #}
{% for name, rows, node in paths %}
{{ name }} {{ dialect.keep_rows }} (
    SELECT * FROM (
        SELECT CAST({{ node }} AS {{ dialect.types.i }}) AS node, {{ writer.fields | join(", ") }}
        FROM {{ rows }} AS rows
    ) AS placed
    WHERE node IS NOT NULL
),
{% endfor %}
