/* SPDX-License-Identifier: MIT */
#include "verify/command/bench_upstream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char opening[] = "#: upstream ";

struct row {
    char *case_line;
    struct assay_upstream_figure figure;
};

struct assay_upstream {
    size_t count;
    struct row *row;
};

struct reading { /* of one file */
    const char *path;
    long line;
    bool is_pending; /* a figure waits for its case */
    struct assay_upstream_figure figure;
};

struct assay_upstream *assay_upstream_open(void)
{
    return calloc(1, sizeof(struct assay_upstream));
}

static enum assay_status refuse(const struct reading *reading, const char *word,
                                const char *problem, struct assay_message *message)
{
    return assay_fail(message, ASSAY_REFUSED, "%s:%ld: %s%s%s", reading->path,
                      reading->line, word, *word ? " " : "", problem);
}

static enum assay_status read_word(struct reading *reading, char *word,
                                   struct assay_message *message)
{
    struct assay_upstream_figure *const figure = &reading->figure;
    const struct {
        const char *key;
        double *value;
    } keys[] = { { "cold", &figure->cold },
                 { "hot", &figure->hot },
                 { "gbps", &figure->cold_gb_per_s },
                 { "vendor", &figure->vendor_cold } };
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        const size_t length = strlen(keys[i].key);
        char *end;
        if (strncmp(word, keys[i].key, length) != 0 || word[length] != '=') continue;
        *keys[i].value = strtod(word + length + 1, &end);
        if (*end == '\0' && *keys[i].value > 0 && *keys[i].value < 1e9) return ASSAY_RAN;
        return refuse(reading, word, "is no figure above 0", message);
    }
    return refuse(reading, word, "is none of cold=, hot=, gbps= and vendor=", message);
}

static enum assay_status read_figure(struct reading *reading, char *words,
                                     struct assay_message *message)
{
    enum assay_status status = ASSAY_RAN;
    if (reading->is_pending)
        return refuse(reading, "", "a second figure before a case", message);
    reading->is_pending = true;
    reading->figure = (struct assay_upstream_figure){ .cold = 0 };
    for (char *word; status == ASSAY_RAN && (word = strsep(&words, " \n"));)
        if (*word) status = read_word(reading, word, message);
    return status;
}

static void write_key(const struct assay_case *the_case, char *line)
{
    struct assay_case other = *the_case;
    other.seed = 0;
    assay_case_format(&other, line, ASSAY_MAX_CASE_LINE);
}

static enum assay_status add_row(struct assay_upstream *upstream,
                                 const struct assay_case *the_case,
                                 const struct assay_upstream_figure *figure,
                                 struct assay_message *message)
{
    char line[ASSAY_MAX_CASE_LINE];
    struct row *const grown =
        realloc(upstream->row, (upstream->count + 1) * sizeof(*upstream->row));
    if (grown) upstream->row = grown;
    write_key(the_case, line);
    char *const copy = grown ? strdup(line) : NULL;
    if (!copy) return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for figures");
    upstream->row[upstream->count++] = (struct row){ copy, *figure };
    return ASSAY_RAN;
}

/* A case without a figure in front of it has none. */
static enum assay_status read_line(struct assay_upstream *upstream,
                                   struct reading *reading, char *line,
                                   struct assay_message *message)
{
    const size_t length = sizeof(opening) - 1;
    struct assay_case the_case;
    reading->line++;
    if (strncmp(line, opening, length) == 0)
        return read_figure(reading, line + length, message);
    if (!reading->is_pending) return ASSAY_RAN;
    reading->is_pending = false;
    line[strcspn(line, "#\n")] = '\0';
    if (assay_case_parse(line, &the_case, message) == ASSAY_RAN)
        return add_row(upstream, &the_case, &reading->figure, message);
    const struct assay_message inner = *message;
    return refuse(reading, "a figure in front of what is no case:", inner.text, message);
}

enum assay_status assay_upstream_read(struct assay_upstream *upstream, const char *path,
                                      struct assay_message *message)
{
    struct reading reading = { .path = path };
    enum assay_status status = ASSAY_RAN;
    char *line = NULL;
    size_t size = 0;
    FILE *const file = fopen(path, "r");
    if (!file)
        return assay_fail(message, ASSAY_REFUSED, "figures '%s' can't be read: %s", path,
                          strerror(errno));
    while (status == ASSAY_RAN && getline(&line, &size, file) >= 0)
        status = read_line(upstream, &reading, line, message);
    if (status == ASSAY_RAN && ferror(file))
        status = assay_fail(message, ASSAY_FAILED, "figures '%s' can't be read", path);
    if (status == ASSAY_RAN && reading.is_pending)
        status = refuse(&reading, "", "a figure without a case behind it", message);
    free(line);
    (void)fclose(file);
    return status;
}

const struct assay_upstream_figure *
assay_upstream_find(const struct assay_upstream *upstream,
                    const struct assay_case *the_case)
{
    char line[ASSAY_MAX_CASE_LINE];
    write_key(the_case, line);
    for (size_t i = 0; i < upstream->count; i++)
        if (strcmp(upstream->row[i].case_line, line) == 0)
            return &upstream->row[i].figure;
    return NULL;
}

void assay_upstream_close(struct assay_upstream *upstream)
{
    if (!upstream) return;
    for (size_t i = 0; i < upstream->count; i++)
        free(upstream->row[i].case_line);
    free(upstream->row);
    free(upstream);
}
