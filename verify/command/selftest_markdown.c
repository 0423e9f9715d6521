/* SPDX-License-Identifier: MIT */
#include "verify/command/selftest_markdown.h"

#include "fuzz/fault/class.h"

#include <stdlib.h>
#include <string.h>

enum assay_status assay_selftest_matrix_add(struct assay_selftest_matrix *matrix,
                                            const struct assay_fault_outcome *outcome)
{
    if (matrix->count == matrix->capacity) {
        const int capacity = matrix->capacity ? 2 * matrix->capacity : 64;
        struct assay_fault_outcome *const grown =
            realloc(matrix->outcome, (size_t)capacity * sizeof(*grown));
        if (!grown) return ASSAY_OUT_OF_MEMORY;
        matrix->outcome = grown;
        matrix->capacity = capacity;
    }
    matrix->outcome[matrix->count++] = *outcome;
    return ASSAY_RAN;
}

static enum assay_status begin(void *state, FILE *file,
                               const struct assay_run_header *header)
{
    (void)header;
    *(struct assay_selftest_matrix *)state =
        (struct assay_selftest_matrix){ .file = file };
    return ASSAY_RAN;
}

static void finish(void *state)
{
    struct assay_selftest_matrix *const matrix = state;
    free(matrix->outcome);
    matrix->outcome = NULL;
    matrix->count = matrix->capacity = 0;
}

/* --- sums ------------------------------------------------------------------------- */

struct share { /* of some faults */
    int faults, caught;
    int judged[ASSAY_MAX_COLUMNS], found[ASSAY_MAX_COLUMNS]; /* by column */
};

static void add(const struct assay_fault_outcome *outcome, struct share *share)
{
    share->faults++;
    share->caught += outcome->is_caught;
    for (int i = 0; i < ASSAY_MAX_COLUMNS; i++) {
        share->judged[i] += outcome->kill[i].chances > 0;
        share->found[i] += outcome->kill[i].cases > 0;
    }
}

/* Of a class, or of all for -1. */
static struct share share_of(const struct assay_selftest_matrix *matrix, int place)
{
    struct share share = { .faults = 0 };
    for (int i = 0; i < matrix->count; i++)
        if (place < 0 || assay_fault_class_of(matrix->outcome[i].fault) == place)
            add(&matrix->outcome[i], &share);
    return share;
}

/* --- tables ----------------------------------------------------------------------- */

static void put_text(FILE *file, const char *text)
{
    for (; *text; text++)
        fprintf(file, *text == '|' ? "\\%c" : "%c", *text);
}

/* The columns behind those that are given. */
static void put_heading(const struct assay_selftest_matrix *matrix, const char *first,
                        int columns)
{
    FILE *const file = matrix->file;
    const struct assay_selftest *const selftest = matrix->selftest;
    fputs(first, file);
    for (int i = 0; i < selftest->column_count; i++)
        fprintf(file, " %s |", selftest->column[i].name);
    fputs("\n|", file);
    for (int i = 0; i < columns + selftest->column_count; i++)
        fputs("---|", file);
    fputc('\n', file);
}

static void put_shares(const struct assay_selftest_matrix *matrix,
                       const struct share *share)
{
    for (int i = 0; i < matrix->selftest->column_count; i++)
        if (share->judged[i])
            fprintf(matrix->file, " %d/%d |", share->found[i], share->judged[i]);
        else
            fputs(" |", matrix->file);
    fputc('\n', matrix->file);
}

static void put_classes(const struct assay_selftest_matrix *matrix)
{
    put_heading(matrix, "| class | faults | caught |", 3);
    for (int i = 0; i < ASSAY_FAULT_CLASSES; i++) {
        const struct share share = share_of(matrix, i);
        if (share.faults == 0) continue;
        fprintf(matrix->file, "| %s %s | %d | %d |", assay_fault_classes[i].id,
                assay_fault_classes[i].name, share.faults, share.caught);
        put_shares(matrix, &share);
    }
    const struct share all = share_of(matrix, -1);
    fprintf(matrix->file, "| all | %d | %d |", all.faults, all.caught);
    put_shares(matrix, &all);
}

static void put_criteria(const struct assay_selftest_matrix *matrix)
{
    const struct assay_selftest *const selftest = matrix->selftest;
    const struct share all = share_of(matrix, -1);
    fputs("| criterion | judged | would have caught | share | rejects the clean model |\n"
          "|---|---|---|---|---|\n",
          matrix->file);
    for (int i = 0; i < selftest->column_count; i++)
        if (selftest->column[i].is_criterion && all.judged[i])
            fprintf(matrix->file, "| %s | %d | %d | %.0f %% | on %d of %d cases |\n",
                    selftest->column[i].name, all.judged[i], all.found[i],
                    100.0 * all.found[i] / all.judged[i], selftest->clean_rejected[i],
                    selftest->clean_judged[i]);
}

static void put_fault(const struct assay_selftest_matrix *matrix,
                      const struct assay_fault_outcome *outcome)
{
    FILE *const file = matrix->file;
    const struct assay_fault *const fault = outcome->fault;
    fprintf(file, "| %s | %s | %s, %s | ", fault->class_id, fault->name,
            assay_fault_kind_names[fault->kind],
            outcome->is_caught ? "caught" : "**survives**");
    put_text(file, fault->meaning);
    if (*outcome->remark) fputs(": ", file);
    put_text(file, outcome->remark);
    fputs(" |", file);
    for (int i = 0; i < matrix->selftest->column_count; i++) {
        const struct assay_kill *const kill = &outcome->kill[i];
        if (kill->cases)
            fprintf(file, " %d |", kill->cases);
        else
            fputs(kill->chances ? " - |" : " |", file);
    }
    fputc('\n', file);
}

static void put_faults(const struct assay_selftest_matrix *matrix)
{
    put_heading(matrix, "| class | fault | kind | what is wrong |", 4);
    for (int place = 0; place < ASSAY_FAULT_CLASSES; place++)
        for (int i = 0; i < matrix->count; i++)
            if (assay_fault_class_of(matrix->outcome[i].fault) == place)
                put_fault(matrix, &matrix->outcome[i]);
}

/* Faults caught, and all; cases of the clean model, and its false alarms. */
static const char introduction[] =
    "# Planted faults\n"
    "\n"
    "`assay selftest --markdown fuzz/fault/README.md` writes this page: it plants one "
    "fault "
    "after the other into a copy of the\n"
    "model, or of the verifier itself, and shows its cases to every check and to other "
    "people's criteria. A number says how\n"
    "many cases a check needed to find the fault; where there is a dash it found nothing "
    "on "
    "cases that show the fault, and where\n"
    "there is nothing it had none to judge.\n"
    "\n"
    "Faults of kind *rounding* have to be found by their bits and named by `identify`, "
    "those of kinds *function* and\n"
    "*execution* found without the model, those of the *verifier* by what it then says "
    "of "
    "the clean model and of a kernel that\n"
    "is known to be wrong. A criterion that rejects the clean model on a case says "
    "nothing "
    "about that case.\n"
    "\n"
    "%d of %d faults are caught as their kind demands. On their %d cases the clean model "
    "raises %d false alarm%s.\n"
    "\n";

static enum assay_status end(void *state, const struct assay_summary *summary)
{
    const struct assay_selftest_matrix *const matrix = state;
    FILE *const file = matrix->file;
    const struct share all = share_of(matrix, -1);
    const int alarms = matrix->selftest->alarms;
    (void)summary;
    fprintf(file, introduction, all.caught, all.faults, matrix->selftest->clean_cases,
            alarms, alarms == 1 ? "" : "s");
    fputs("## Other people's criteria\n\n", file);
    put_criteria(matrix);
    fputs("\n## Classes: faults found, of those judged\n\n", file);
    put_classes(matrix);
    fputs("\n## Faults: cases needed\n\n", file);
    put_faults(matrix);
    return ferror(file) || fflush(file) != 0 ? ASSAY_FAILED : ASSAY_RAN;
}

const struct assay_report assay_selftest_markdown = {
    .name = "markdown",
    .summary = "the matrix of planted faults",
    .state_bytes = sizeof(struct assay_selftest_matrix),
    .begin = begin,
    .end = end,
    .close = finish,
};
