/* SPDX-License-Identifier: MIT */
#include "verify/identify/knob_answer.h"

#include "verify/case/setting.h"
#include "verify/identify/knob_rank.h"
#include "verify/operation/numerics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Other named numerics with the same knobs. */
static void write_aliases(const struct assay_operation *operation, const void *numerics,
                          const char *name, FILE *file)
{
    bool is_first = true;
    for (const struct assay_named_numerics *row = operation->numerics; row->name; row++) {
        if (strcmp(row->name, name) == 0 ||
            !assay_knobs_are_equal(operation, numerics, row->numerics))
            continue;
        fprintf(file, "%s%s", is_first ? " (also " : ", ", row->name);
        is_first = false;
    }
    if (!is_first) fputc(')', file);
}

void assay_knob_setting_write(const struct assay_knob_space *space, int setting,
                              FILE *file)
{
    const void *const numerics = space->item[setting].numerics;
    char text[ASSAY_MAX_NUMERICS_TEXT];
    assay_numerics_format(space->operation, numerics, text, sizeof(text));
    char *rest = text;
    const char *const name = strsep(&rest, ",");
    fputs(name, file);
    if (!rest) write_aliases(space->operation, numerics, name, file);
    for (const char *joint = " with "; rest; joint = " and ")
        fprintf(file, "%s%s", joint, strsep(&rest, ","));
}

/* The only knob in which two settings differ; NULL if there are several. */
static const struct assay_knob *single_difference(const struct assay_knob_space *space,
                                                  int a, int b)
{
    const struct assay_knob *found = NULL;
    for (const struct assay_knob *knob = space->operation->knobs; knob->name; knob++) {
        if (assay_knob_value(knob, space->item[a].numerics) ==
            assay_knob_value(knob, space->item[b].numerics))
            continue;
        if (found) return NULL;
        found = knob;
    }
    return found;
}

static void write_value(const struct assay_knob *knob, int value, FILE *file)
{
    const struct assay_setting setting = { .name = knob->name,
                                           .choices = knob->choices,
                                           .minimum = knob->minimum,
                                           .maximum = knob->maximum };
    char text[64];
    struct assay_text out = assay_text_open(text, sizeof(text));
    assay_setting_format(&setting, value, &out);
    fputs(text, file);
}

static int by_value(const void *a, const void *b)
{
    const int first = *(const int *)a, second = *(const int *)b;
    return (first > second) - (first < second);
}

/* The first setting's value of a knob, then those of the settings that differ from it in
 * nothing else, integers ascending. Returns how many. */
static int collect_values(const struct assay_knob_answer *answer,
                          const struct assay_knob *knob, int *values)
{
    const struct assay_knob_space *const space = &answer->search->space;
    const int lead = answer->setting[0];
    int count = 0;
    values[count++] = assay_knob_value(knob, space->item[lead].numerics);
    for (int i = 1; i < answer->count; i++)
        if (single_difference(space, lead, answer->setting[i]) == knob)
            values[count++] =
                assay_knob_value(knob, space->item[answer->setting[i]].numerics);
    if (!knob->choices) qsort(values + 1, (size_t)count - 1, sizeof(*values), by_value);
    return count;
}

/* "128, 256 and never"; integers that follow each other as "13 to 40". */
static void write_values(const struct assay_knob *knob, const int *values, int count,
                         FILE *file)
{
    fprintf(file, "%s=", knob->name);
    for (int i = 0; i < count;) {
        int last = i;
        while (!knob->choices && last + 1 < count && values[last + 1] == values[last] + 1)
            last++;
        if (last == i + 1) last = i;
        if (i > 0) fputs(last == count - 1 ? " and " : ", ", file);
        write_value(knob, values[i], file);
        if (last > i) {
            fputs(" to ", file);
            write_value(knob, values[last], file);
        }
        i = last + 1;
    }
}

/* So many settings that differ from the first in several knobs are written out. */
enum { OTHERS_SHOWN = 3 };

static void write_equivalents(const struct assay_knob_answer *answer, FILE *file)
{
    const struct assay_knob_space *const space = &answer->search->space;
    int *const values = calloc((size_t)answer->count, sizeof(*values));
    const char *joint = ": ";
    for (const struct assay_knob *knob = space->operation->knobs; values && knob->name;
         knob++) {
        const int count = collect_values(answer, knob, values);
        if (count == 1) continue;
        fputs(joint, file);
        write_values(knob, values, count, file);
        joint = "; ";
    }
    free(values);
    int others = 0;
    for (int i = 1; i < answer->count; i++) {
        if (single_difference(space, answer->setting[0], answer->setting[i])) continue;
        if (others++ >= OTHERS_SHOWN) continue;
        fputs(joint, file);
        assay_knob_setting_write(space, answer->setting[i], file);
        joint = "; ";
    }
    if (others > OTHERS_SHOWN)
        fprintf(file, "; %d more, which --json lists", others - OTHERS_SHOWN);
}

static void write_limits(const struct assay_knob_answer *answer, FILE *file)
{
    const struct assay_knob_search *const search = answer->search;
    const struct assay_separation *const separation = answer->separation;
    if (separation && separation->cases)
        fprintf(file, ". %d further case%s looked at, %d run", separation->cases,
                separation->cases == 1 ? "" : "s", separation->runs);
    int partial = 0;
    for (int i = 0; i < answer->count; i++)
        partial += search->space.item[answer->setting[i]].whole.parts <
                   search->observation->parts;
    if (partial)
        fprintf(file, ". Time was up: %d of these %s compared in part", partial,
                partial == 1 ? "was" : "were");
    else if (search->was_cut_short)
        fprintf(file, ". Time was up with %d settings untried",
                search->space.count - search->tried);
    else if (separation && separation->was_cut_short)
        fputs(". Time was up before further cases told no more", file);
}

static void write_equal(const struct assay_knob_answer *answer, FILE *file)
{
    fputs("equals ", file);
    assay_knob_setting_write(&answer->search->space, answer->setting[0], file);
    if (answer->count > 1) {
        fputs("; these can't be told apart here", file);
        write_equivalents(answer, file);
    }
}

static void write_unexplained(const struct assay_knob_answer *answer, FILE *file)
{
    const struct assay_knob_search *const search = answer->search;
    const struct assay_separation *const separation = answer->separation;
    fputs("unexplained: ", file);
    if (separation && *separation->refuted_by) {
        fprintf(file, "what fits this case fails '%s'", separation->refuted_by);
    } else if (search->observation->judged == 0) {
        fputs("no element of the outputs is defined", file);
    } else if (answer->nearest_count == 0) {
        fputs("no numerics make sense for the case", file);
    } else {
        const struct assay_knob_setting *const nearest =
            &search->space.item[answer->nearest[0]];
        fputs("the nearest, ", file);
        assay_knob_setting_write(&search->space, answer->nearest[0], file);
        fprintf(file, ", gives %.1f %% of %s%lld elements",
                floor(1000 * assay_setting_share(nearest)) / 10,
                nearest->whole.parts < search->observation->parts ? "the first " : "the ",
                (long long)assay_setting_tally(nearest)->elements);
    }
}

void assay_knob_answer_write(const struct assay_knob_answer *answer, FILE *file)
{
    if (answer->count)
        write_equal(answer, file);
    else
        write_unexplained(answer, file);
    write_limits(answer, file);
}
