{#- What an ensemble adds to tree.js: sums over trees, and predictions of them. #}
{% if votes %}
// Returns 1 for a class and 0 for the others.
function voteOf(code) {
    return CLASSES.map((label, other) => other === code ? 1 : 0);
}

{% endif %}
{% if weights %}
// What the vote of each tree weighs.
const WEIGHTS = {{ weights }};

{% endif %}
{% if initial %}
// The sums before the first tree.
const INITIAL = {{ initial }};

// Returns the sums of the trees.
function marginsOf(row) {
    const cells = read(row), margins = new Array({{ n_sums }}).fill(0);
    for (let tree = 0; tree < {{ n_trees }}; tree++) {
        margins[tree % {{ n_sums }}] += predicted(cells, tree);
    }
    return margins.map((margin, k) => margin + INITIAL[k]);
}

{% endif %}
{% if is_regression and initial %}
function predict(row) {
    return {{ "Math.exp(marginsOf(row)[0])" if link else "marginsOf(row)[0]" }};
}

{% elif is_regression %}
function predict(row) {
    const cells = read(row);
    let number = predicted(cells, 0);
    for (let tree = 1; tree < {{ n_trees }}; tree++) {
        number += predicted(cells, tree);
    }
    return number / {{ n_trees }};
}

{% else %}
{% if not divides or initial %}
{{ best("" if votes else costs) }}

{% elif votes and costs %}
{{ best("", "mostOf") }}

{% endif %}
function predict(row) {
    return CLASSES[{{ "mostOf" if divides and votes and costs else "bestOf" }}(predictProba(row))];
}

function predictProba(row) {
{% if link == "logistic" %}
    const margin = marginsOf(row)[0], small = Math.exp(-Math.abs(margin));
    const shares = [small / (1 + small), 1 / (1 + small)];
    return margin >= 0 ? shares : shares.reverse();
{% elif link %}
    const margins = marginsOf(row);
    const top = margins.reduce((a, b) => Math.max(a, b));
    const powers = margins.map((margin) => Math.exp(margin - top));
    const total = powers.reduce((a, b) => a + b);
    return powers.map((power) => power / total);
{% elif weights %}
    const cells = read(row), shares = CLASSES.map(() => 0);
    WEIGHTS.forEach((weight, tree) => {
        predicted(cells, tree).forEach((vote, code) => {
            shares[code] += weight * vote;
        });
    });
    return shares.map((share) => share / {{ divisor }});
{% else %}
    const cells = read(row), shares = predicted(cells, 0).slice();
    for (let tree = 1; tree < {{ n_trees }}; tree++) {
        predicted(cells, tree).forEach((share, code) => {
            shares[code] += share;
        });
    }
    return shares.map((share) => share / {{ n_trees }});
{% endif %}
}

{% endif %}
