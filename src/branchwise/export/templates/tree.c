{#- Filled in by export/c.py, which writes texts, numbers and notes so that C reads the
    same and nothing in them ends a comment or a string. -#}
{% autoescape false %}
{% macro best(costs, name="best") %}
// Returns the first class that is as good as the best, up to rounding.
static int {{ p }}_{{ name }}(const double *chances)
{
    double scores[{{ P }}_CLASSES], best, least;
    int k;
{% if costs %}
    for (k = 0; k < {{ P }}_CLASSES; k++) {
        double price = 0.0;
        int truth;
        for (truth = 0; truth < {{ P }}_CLASSES; truth++) {
            price += {{ p }}_product(chances[truth], {{ p }}_costs[truth][k]);
        }
        scores[k] = -price;
    }
{% else %}
    memcpy(scores, chances, sizeof scores);
{% endif %}
    best = scores[0];
    for (k = 1; k < {{ P }}_CLASSES; k++) {
        if (scores[k] > best) best = scores[k];
    }
    least = best - {{ p }}_product(fabs(best), 1e-9);
    for (k = 0; scores[k] < least; k++) {
    }
    return k;
}
{% endmacro %}
// {{ about }}, written by branchwise.
//
{% if classes %}
// {{ p }}_predict(&row, probabilities) returns the class, a position in {{ p }}_classes, and
// fills in the probability of each class, unless that is NULL. Where column k (of
// {{ p }}_columns) has a value that the tree cannot take, it returns -1 - k instead.
{% else %}
// {{ p }}_predict(&row, &number) fills in a number and returns 0. Where column k (of
// {{ p }}_columns) has a value that the tree cannot take, it returns -1 - k instead.
{% endif %}
// Start a row from {{ p }}_missing_row, in which everything is missing: NULL, NAN and -1.
// Texts are UTF-8. Compile this file as C99 or C++17, or include it; to include
// only what it declares, define {{ P }}_DECLARATIONS_ONLY first. It allocates nothing.
#ifndef {{ P }}_DECLARED
#define {{ P }}_DECLARED
#ifdef __cplusplus
extern "C" {
#endif

// What the tree looks at.
struct {{ p }}_row {
{% for field in fields %}
    {{ field.member }}  // {{ field.note }}
{% else %}
    char unused;  // the tree asks nothing
{% endfor %}
};
{% if classes %}
enum { {{ P }}_CLASSES = {{ classes }} };
extern const char *const {{ p }}_classes[{{ classes }}];
extern const char *const {{ p }}_columns[{{ columns }}];
extern const struct {{ p }}_row {{ p }}_missing_row;
int {{ p }}_predict(const struct {{ p }}_row *row, double *probabilities);

{% else %}
extern const char *const {{ p }}_columns[{{ columns }}];
extern const struct {{ p }}_row {{ p }}_missing_row;
int {{ p }}_predict(const struct {{ p }}_row *row, double *number);

{% endif %}
#ifdef __cplusplus
}
#endif
#endif  // {{ P }}_DECLARED

#ifndef {{ P }}_DECLARATIONS_ONLY
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "compile without -ffast-math: a missing number is NAN, and sums have an order"
#endif

{% if divides or n_trees %}
{# GCC ignores the pragma; products that are added are volatile for that reason. #}
#if FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 1
#error "compile for arithmetic in double precision (-msse2 -mfpmath=sse)"
#endif
#if !defined(__GNUC__) || defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

{% endif %}
enum { {{ P }}_MISSING = -1, {{ P }}_OTHER = -2 };
struct {{ p }}_cells {
{% if n_codes %}
    int code[{{ n_codes }}];
{% endif %}
{% if n_numbers %}
    double number[{{ n_numbers }}];
{% endif %}
{% if not fields %}
    char unused;
{% endif %}
};
{% for line in long_texts %}
{{ line }}
{% endfor %}
{{ arrays.columns }}
{% if classes %}
{{ arrays.classes }}
{% endif %}
const struct {{ p }}_row {{ p }}_missing_row = {{ "{" }}{{ missing_row }}};
{% if divides %}
// Where the parts of a case go. A call needs {{ stack }} kB of stack for that; compile with
// -D{{ P }}_STORAGE=static to keep it in static memory, if there is only one call at a time.
#ifndef {{ P }}_STORAGE
#define {{ P }}_STORAGE
#endif
struct {{ p }}_places {
    int n;
    int to[{{ leaves }}];
    double share[{{ leaves }}];
};

static void {{ P }}_go(struct {{ p }}_places *places, int to, double share)
{
    places->to[places->n] = to;
    places->share[places->n] = share;
    places->n++;
}

{% endif %}
{% if divides or (n_trees and classes) %}
// Returns a product that is rounded before it is added to anything.
static double {{ p }}_product(double a, double b)
{
    volatile double product = a * b;
    return product;
}

{% if costs and (divides or not votes) %}
// What it costs to answer (column) where something is true (row).
static const double {{ p }}_costs[{{ classes }}][{{ classes }}] = {
{% for row in costs %}
    {{ "{" }}{{ row }}},
{% endfor %}
};
{% endif %}
{% endif %}
{% for line in tables %}
{{ line }}
{% endfor %}

{% for line in functions %}
{{ line }}
{% endfor %}
// What every node answers.
{% if not has_numbers %}
{% if votes or not n_trees %}
{{ arrays.labels }}
{% endif %}
{% if divides or not votes %}
static const double {{ p }}_chances[{{ nodes|length }}][{{ classes }}] = {
{% for node in nodes %}
    {{ "{" }}{{ node }}},  // {{ loop.index0 }}
{% endfor %}
};
{% endif %}
{% else %}
static const double {{ p }}_numbers[{{ nodes|length }}] = {
{% for node in nodes %}
    {{ node }},  // {{ loop.index0 }}
{% endfor %}
};
{% endif %}
// The values that training had, in order.
{% for field in fields if field.array %}
{{ field.array }}
{% endfor %}
{% if "text" in coded %}

static int {{ p }}_text_code(const char *value, const char *const *values, int n)
{
    int low = 0, high = n - 1;
    if (value == NULL) return {{ P }}_MISSING;
    while (low <= high) {
        const int middle = low + (high - low) / 2;
        const int order = strcmp(value, values[middle]);
        if (order == 0) return middle;
        if (order < 0) high = middle - 1; else low = middle + 1;
    }
    return {{ P }}_OTHER;
}

{% endif %}
{% if "number" in coded %}

static int {{ p }}_number_code(double value, const double *values, int n)
{
    int low = 0, high = n - 1;
    if (isnan(value)) return {{ P }}_MISSING;
    while (low <= high) {
        const int middle = low + (high - low) / 2;
        if (value == values[middle]) return middle;
        if (value < values[middle]) high = middle - 1; else low = middle + 1;
    }
    return {{ P }}_OTHER;
}

{% endif %}
{% if "boolean" in coded %}

static int {{ p }}_boolean_code(int value, int code_of_false, int code_of_true)
{
    if (value < 0) return {{ P }}_MISSING;
    return value ? code_of_true : code_of_false;
}

{% endif %}
{% if derived %}

// Returns the quotient of whole numbers, rounded down.
static double {{ p }}_floor_div(double number, double by)
{
    double rest = fmod(number, by);
    if (rest < 0) rest += by;
    return (number - rest) / by;
}
{% endif %}
{% for field in derived %}

// {{ field.note }}
static double {{ p }}_feature_{{ loop.index0 }}(double number)
{
{% for line in field.lines %}
    {{ line }}
{% endfor %}
    return {{ field.result }};
}
{% endfor %}

// Takes the values that the tree looks at; returns less than 0 if it cannot.
static int {{ p }}_read(const struct {{ p }}_row *row, struct {{ p }}_cells *cells)
{
{% if not fields %}
    (void)row;
    (void)cells;
{% endif %}
{% for field in fields %}
{% set member = "row->" + field.name %}
{% set refuse = "return -%d;"|format(loop.index) %}
{% if field.kind == "number" %}
    if (isinf({{ member }})) {{ refuse }}
{% elif field.kind == "boolean" %}
    if ({{ member }} < -1 || {{ member }} > 1) {{ refuse }}
{% endif %}
{% if field.numeric %}
    {{ field.cell }} = {{ "floor(" + member + ")" if field.is_date else member }};
{% if rejects_missing %}
    if (isnan({{ member }})) {{ refuse }}
{% endif %}
{% else %}
{% if not field.n_values %}
    {{ field.cell }} = {{ member }} == NULL ? {{ P }}_MISSING : {{ P }}_OTHER;
{% elif field.kind == "boolean" %}
    {{ field.cell }} = {{ p }}_boolean_code({{ member }}, {{ field.booleans }});
{% else %}
    {{ field.cell }} = {{ p }}_{{ field.kind }}_code({{ member }}, {{ p }}_values_{{ loop.index0 }}, {{ field.n_values }});
{% endif %}
{% if rejects_missing %}
    if ({{ field.cell }} == {{ P }}_MISSING) {{ refuse }}
{% endif %}
{% if rejects_unseen %}
    if ({{ field.cell }} == {{ P }}_OTHER) {{ refuse }}
{% endif %}
{% endif %}
{% endfor %}
{% for field in derived %}
    {{ field.cell }} = {{ p }}_feature_{{ loop.index0 }}({{ field.source }});
{% endfor %}
    return 0;
}

{% if arrays.pieces %}
{% if divides %}
typedef void (*{{ p }}_part)(const struct {{ p }}_cells *, double, struct {{ p }}_places *);
{% else %}
typedef int (*{{ p }}_part)(const struct {{ p }}_cells *);
{% endif %}
{{ arrays.pieces }}

{% endif %}
{% if divides %}
static void {{ p }}_sort(struct {{ p }}_places *places)
{
    int gap = 1, i, k;
    while (gap < places->n / 3) gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3) {
        for (i = gap; i < places->n; i++) {
            const int to = places->to[i];
            const double share = places->share[i];
            for (k = i; k >= gap && places->to[k - gap] > to; k -= gap) {
                places->to[k] = places->to[k - gap];
                places->share[k] = places->share[k - gap];
            }
            places->to[k] = to;
            places->share[k] = share;
        }
    }
}

// Finds the nodes where the parts of a case end, in order, with their shares.
static void {{ p }}_arrive(const struct {{ p }}_cells *cells, {{ "int tree, " if n_trees }}struct {{ p }}_places *ends)
{
    {{ P }}_STORAGE struct {{ p }}_places todo;
    todo.n = 0;
    ends->n = 0;
    {{ p }}_{{ "parts[tree]" if n_trees else "part_0" }}(cells, 1.0, &todo);
    while (todo.n > 0) {
        const int to = todo.to[--todo.n];
        const double share = todo.share[todo.n];
        if (to >= 0) {
            {{ P }}_go(ends, to, share);
        } else {
            {{ p }}_parts[-to](cells, share, &todo);
        }
    }
    {{ p }}_sort(ends);
}

{% if classes %}
{{ best(costs) }}

{% if not n_trees %}
int {{ p }}_predict(const struct {{ p }}_row *row, double *probabilities)
{
    {{ P }}_STORAGE struct {{ p }}_places ends;
    double chances[{{ P }}_CLASSES];
    struct {{ p }}_cells cells;
    const int refused = {{ p }}_read(row, &cells);
    int i, k, label;
    if (refused) return refused;
    {{ p }}_arrive(&cells, &ends);
    for (k = 0; k < {{ P }}_CLASSES; k++) {
        chances[k] = ends.n == 1 ? {{ p }}_chances[ends.to[0]][k] : 0.0;
        for (i = 0; ends.n > 1 && i < ends.n; i++) {
            chances[k] += {{ p }}_product({{ p }}_chances[ends.to[i]][k], ends.share[i]);
        }
    }
    label = ends.n == 1 ? {{ p }}_labels[ends.to[0]] : {{ p }}_best(chances);
    if (probabilities) memcpy(probabilities, chances, sizeof chances);
    return label;
}
{% endif %}
{% elif not n_trees %}
int {{ p }}_predict(const struct {{ p }}_row *row, double *number)
{
    {{ P }}_STORAGE struct {{ p }}_places ends;
    struct {{ p }}_cells cells;
    const int refused = {{ p }}_read(row, &cells);
    int i;
    if (refused) return refused;
    {{ p }}_arrive(&cells, &ends);
    if (ends.n == 1) {
        *number = {{ p }}_numbers[ends.to[0]];
        return 0;
    }
    *number = 0.0;
    for (i = 0; i < ends.n; i++) {
        *number += {{ p }}_product({{ p }}_numbers[ends.to[i]], ends.share[i]);
    }
    return 0;
}
{% endif %}
{% elif not n_trees %}
int {{ p }}_predict(const struct {{ p }}_row *row, double *{{ "probabilities" if classes else "number" }})
{
    struct {{ p }}_cells cells;
    const int refused = {{ p }}_read(row, &cells);
    int to;
    if (refused) return refused;
    to = {{ p }}_part_0(&cells);
{% if arrays.pieces %}
    while (to < 0) to = {{ p }}_parts[-to](&cells);
{% endif %}
{% if classes %}
    if (probabilities) {
        memcpy(probabilities, {{ p }}_chances[to], sizeof {{ p }}_chances[to]);
    }
    return {{ p }}_labels[to];
{% else %}
    *number = {{ p }}_numbers[to];
    return 0;
{% endif %}
}
{% endif %}
{% if n_trees %}
{% include "export/templates/ensemble.c" %}

{% endif %}

#endif  // {{ P }}_DECLARATIONS_ONLY
{% endautoescape %}
