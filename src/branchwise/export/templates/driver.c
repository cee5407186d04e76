{#- Runs an export to C, filled in by export/c.py. -#}
{% autoescape false %}
#include <stdio.h>
#include <stdlib.h>
#include "exported_tree.c"

static int take(void *to, size_t size, FILE *from)
{
    return fread(to, 1, size, from) == size;
}

static char *take_text(FILE *from)
{
    int size;
    char *text;
    if (!take(&size, sizeof size, from) || size < 0) return NULL;
    text = (char *)malloc((size_t)size + 1);
    if (text == NULL || !take(text, (size_t)size, from)) abort();
    text[size] = 0;
    return text;
}

int main(void)
{
    FILE *rows = fopen("rows", "rb"), *results = fopen("results", "wb");
    int n = 0;
    if (rows == NULL || results == NULL || !take(&n, sizeof n, rows)) return 2;
    (void)take_text;
    while (n-- > 0) {
        struct {{ p }}_row row = {{ p }}_missing_row;
        double numbers[{{ numbers }}] = {0};
        int label;
{% for line in take %}
        {{ line }}
{% endfor %}
        label = {{ p }}_predict(&row, numbers);
        fwrite(&label, sizeof label, 1, results);
        fwrite(numbers, sizeof numbers, 1, results);
{% for line in free %}
        {{ line }}
{% endfor %}
    }
    fclose(rows);
    return fclose(results) ? 2 : 0;
}
{% endautoescape %}
