/* SPDX-License-Identifier: MIT */
/* A case is one line of text, "OP key=value ...": everything needed to repeat it. Tokens
 * are separated by spaces and tabs. Besides the keys of its operation a case has those of
 * every operation:
 *
 *   data=KIND                        a name of assay_data_kinds that the operation takes
 *   seed=N                           64 bits, decimal or 0x and hexadecimal
 *   as=NAME[,knob=value...]          numerics; checked by assay_numerics_parse
 *   unsafe=0|1                       let a normally refused input through
 *   bits=TENSOR[.INDEX...]:HEX[,...] explicit elements, each named once
 */
#ifndef ASSAY_VERIFY_CASE_CASE_H
#define ASSAY_VERIFY_CASE_CASE_H

#include "verify/case/message.h"
#include "verify/data/kind.h"

#include <stdbool.h>
#include <stdint.h>

/* Values of fractions are whole numbers of 10^-12. */
#define ASSAY_FRACTION_UNIT INT64_C(1000000000000)

struct assay_operation;

enum {
    ASSAY_MAX_PARAMETERS = 32,
    ASSAY_MAX_CASE_LINE = 4096,
    ASSAY_MAX_EXPLICIT_BITS = 64,
    ASSAY_MAX_NUMERICS_TEXT = 512,
    ASSAY_MAX_LIST_VALUES = 512, /* of all lists of a case together */
};

struct assay_choice { /* tables are closed by a NULL name */
    const char *name;
    int value;
    const char *meaning;
};

/* One key of an operation. A parameter with choices takes one of their names; the others
 * take a decimal integer in [minimum, maximum], a list one or more of them with commas
 * between ("masked_m=0,1,64"; left out: empty). A fraction takes a decimal number of at
 * most 12 decimals ("0.0416666679"), kept exactly: value, minimum, maximum and default
 * are in units of 1 / ASSAY_FRACTION_UNIT, and at most 2^53 of them (about 9007.2). */
struct assay_parameter { /* tables are closed by a NULL name */
    const char *name, *meaning;
    const struct assay_choice *choices;
    int64_t minimum, maximum;
    bool is_required;
    int64_t default_value; /* released defaults never change; 0 for a list */
    bool is_list, is_fraction;
};

struct assay_explicit_bits { /* "bits=a.0.3:7f": element [0, 3] of tensor a is 0x7f */
    char tensor[32];
    int rank;
    int64_t index[5];
    uint32_t bits;
};

struct assay_case {
    const struct assay_operation *operation;
    int64_t value[ASSAY_MAX_PARAMETERS]; /* in the order of operation->parameters; of a
                                            list: where it starts, and its length */
    int list_values;                     /* of all lists */
    int64_t list_value[ASSAY_MAX_LIST_VALUES];
    enum assay_data_kind data;
    uint64_t seed;
    char numerics[ASSAY_MAX_NUMERICS_TEXT]; /* as=; empty: the default */
    bool is_unsafe;                         /* let a normally refused input through */
    int explicit_bits_count;
    struct assay_explicit_bits explicit_bits[ASSAY_MAX_EXPLICIT_BITS];
};

/* Parses a line (no newline). Refuses unknown operations and keys (naming the nearest),
 * repeated keys, missing ones, malformed and out-of-range values, anything but printable
 * ASCII, and a line or a canonical form that does not fit ASSAY_MAX_CASE_LINE. */
enum assay_status assay_case_parse(const char *line, struct assay_case *the_case,
                                   struct assay_message *message);

/* Writes the canonical line: descriptor order, defaults omitted, required keys always,
 * then data unless normal, seed always, as, unsafe, bits. Parsing it gives the same case.
 * @size must be ASSAY_MAX_CASE_LINE; a longer line is asserted against. */
void assay_case_format(const struct assay_case *the_case, char *line, size_t size);

/* The parameter's value; the name must be one of the operation's (asserted). */
int64_t assay_case_value(const struct assay_case *the_case, const char *name);
void assay_case_set(struct assay_case *the_case, const char *name, int64_t value);

/* The value of a fraction, rounded once to a double. */
double assay_case_fraction(const struct assay_case *the_case, const char *name);

/* The same for lists. Setting one returns false when there is no room. */
const int64_t *assay_case_list(const struct assay_case *the_case, const char *name,
                               int *count);
bool assay_case_set_list(struct assay_case *the_case, const char *name,
                         const int64_t *values, int count);

/* Whether cases of the operation may have that kind of data; all take recorded data. */
bool assay_operation_takes(const struct assay_operation *, enum assay_data_kind);

/* A case of the operation with every default; required values are 0. */
void assay_case_init(struct assay_case *the_case, const struct assay_operation *);

/* Reads a suite: case lines, blank lines and comments, which begin with # at the start of
 * a word. "-" is standard input. Calls @visit for each case; a refusal, the visitor's as
 * well, names file and line. Stops at the first status other than ASSAY_RAN. A file that
 * is not there is refused; one that can't be read has failed. */
enum assay_status assay_suite_read(const char *path,
                                   enum assay_status (*visit)(void *context,
                                                              const struct assay_case *,
                                                              struct assay_message *),
                                   void *context, struct assay_message *message);

#endif
