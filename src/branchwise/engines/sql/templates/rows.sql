{# The steps that encode all rows: their node, class code y or number v, weight w and
   case k where they are not 1, and for each column its code, or the number itself. #}
{% for at in writer.joined %}
"branchwise values {{ at }}" (k, c) AS ({{ binder.relation(writer.keys_and_codes(at)) }}),
{% endfor %}
"branchwise rows" AS (
    {{ "SELECT * FROM (" if writer.plan.weighted }}
        SELECT CAST(0 AS {{ dialect.types.i }}) AS node
        , {{ target }} AS {{ writer.carried[0] }}
        {% if writer.has_weight %}
            , {{ dialect.double(weight) }} AS w
        {% endif %}
        {% if writer.has_case %}
            , {{ dialect.double("1") }} AS k
        {% endif %}
        {% for attribute in writer.attributes %}
            , {{ writer.code(attribute, binder) }} AS {{ attribute.name }}
        {% endfor %}
        FROM {{ writer.source.relation }} AS source
        {% for at in writer.joined %}
            LEFT JOIN "branchwise values {{ at }}" AS d{{ at }} ON d{{ at }}.k = {{ writer.key(at) }}
        {% endfor %}
    {{ ") AS weighed WHERE w > 0" if writer.plan.weighted }}
),
