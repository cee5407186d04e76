{#- What an ensemble adds to tree.c: sums over trees, and predictions of them. #}
{% set values = p + ("_numbers" if has_numbers else "_chances") %}
{% set k = "" if has_numbers else "[k]" %}
{% set width = 1 if has_numbers else classes %}
{% if classes and not divides %}
{{ best("" if votes else costs) }}

{% elif divides and votes and costs %}
{{ best("", "most") }}

{% endif %}
// Fills in what a tree predicts: {{ "1 for its class, 0 for others" if votes else "a number" if has_numbers else "probabilities" }}.
static void {{ p }}_predicted(const struct {{ p }}_cells *cells, int tree, double *values)
{
{% if divides %}
    {{ P }}_STORAGE struct {{ p }}_places ends;
    int i, k;
    {{ p }}_arrive(cells, tree, &ends);
    for (k = 0; k < {{ width }}; k++) {
        values[k] = ends.n == 1 ? {{ values }}[ends.to[0]]{{ k }} : 0.0;
        for (i = 0; ends.n > 1 && i < ends.n; i++) {
            values[k] += {{ p }}_product({{ values }}[ends.to[i]]{{ k }}, ends.share[i]);
        }
    }
{% if votes %}
    i = ends.n == 1 ? {{ p }}_labels[ends.to[0]] : {{ p }}_best(values);
    for (k = 0; k < {{ classes }}; k++) values[k] = k == i;
{% endif %}
{% else %}
    int k, to = {{ p }}_parts[tree](cells);
    while (to < 0) to = {{ p }}_parts[-to](cells);
    for (k = 0; k < {{ width }}; k++) {
        values[k] = {{ p + "_labels[to] == k" if votes else values + "[to]" + k }};
    }
{% endif %}
}

{% if weights %}
// What the vote of each tree weighs.
{{ weights }}

{% endif %}
{% if initial %}
// The sums before the first tree.
{{ initial }}

{% endif %}
int {{ p }}_predict(const struct {{ p }}_row *row, double *{{ "probabilities" if classes else "number" }})
{
    double total[{{ n_sums }}]{{ " = {0}" if weights or initial }}, values[{{ width }}];
{% if link == "logistic" %}
    double shares[{{ classes }}], small;
{% elif link == "softmax" %}
    double top, powers = 0.0;
{% endif %}
    struct {{ p }}_cells cells;
    const int refused = {{ p }}_read(row, &cells);
    int k, tree;
    if (refused) return refused;
{% if initial %}
    for (tree = 0; tree < {{ n_trees }}; tree++) {
        {{ p }}_predicted(&cells, tree, values);
        total[tree % {{ n_sums }}] += values[0];
    }
    for (k = 0; k < {{ n_sums }}; k++) total[k] += {{ p }}_initial[k];
{% elif weights %}
    for (tree = 0; tree < {{ n_trees }}; tree++) {
        {{ p }}_predicted(&cells, tree, values);
        for (k = 0; k < {{ classes }}; k++) {
            total[k] += {{ p }}_product({{ p }}_weights[tree], values[k]);
        }
    }
    for (k = 0; k < {{ classes }}; k++) total[k] /= {{ divisor }};
{% else %}
    {{ p }}_predicted(&cells, 0, total);
    for (tree = 1; tree < {{ n_trees }}; tree++) {
        {{ p }}_predicted(&cells, tree, values);
        for (k = 0; k < {{ classes or 1 }}; k++) total[k] += values[k];
    }
    for (k = 0; k < {{ classes or 1 }}; k++) total[k] /= {{ n_trees }};
{% endif %}
{% if link == "logistic" %}
    small = exp(-fabs(total[0]));
    k = total[0] >= 0;
    shares[k] = 1.0 / (1.0 + small);
    shares[1 - k] = small / (1.0 + small);
    if (probabilities) memcpy(probabilities, shares, sizeof shares);
    return {{ p }}_best(shares);
{% elif classes %}
{% if link %}
    top = total[0];
    for (k = 1; k < {{ classes }}; k++) top = total[k] > top ? total[k] : top;
    for (k = 0; k < {{ classes }}; k++) powers += total[k] = exp(total[k] - top);
    for (k = 0; k < {{ classes }}; k++) total[k] /= powers;
{% endif %}
    if (probabilities) memcpy(probabilities, total, sizeof total);
    return {{ p }}_{{ "most" if divides and votes and costs else "best" }}(total);
{% else %}
    *number = {{ "exp(total[0])" if link else "total[0]" }};
    return 0;
{% endif %}
}
