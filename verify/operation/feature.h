/* SPDX-License-Identifier: MIT */
/* What random cases of an operation vary: a table of features, each a key with the
 * classes that its values fall into. A campaign walks the product of all classes, and
 * draw.h makes a case of a tuple of them. Tables are part of the tool, so mistakes in
 * them are asserted against.
 *
 *   key     = KEY { "," KEY }            several that only change together
 *   classes = "*" | CLASS { " " CLASS }  one that stands there twice is taken twice as
 *                                        often
 *   CLASS   = LIST { "," LIST }          for each KEY
 *   LIST    = VALUES [ "*" VALUES ]      the values of a list, and how many of them
 *   VALUES  = VALUE { "|" VALUE }        one of them, each as likely
 *   VALUE   = "-" | name | TERM [ ".." TERM [ "/" STEP ] ]
 *   TERM    = number | key [ "+" number | "-" number ]
 *
 * KEY is a parameter, "data", "as" or "unsafe". "-" is the default: the key is left out.
 * Names are those of choices, data kinds and named numerics. A range is drawn from
 * evenly: whole numbers, or steps of STEP from its beginning, which fractions need. A key
 * in a TERM means its value in the same case; it is from an earlier row. Each value of a
 * list is drawn for itself; without "*" there is one. "*" alone stands for one class each
 * of all that there are: choices, the default and all named numerics, or the data kinds
 * that the operation takes but for zero and recorded. A key may come again in a later
 * row, which then decides. */
#ifndef ASSAY_VERIFY_OPERATION_FEATURE_H
#define ASSAY_VERIFY_OPERATION_FEATURE_H

#include <stdbool.h>
#include <stdint.h>

struct assay_case;
struct assay_operation;
struct assay_stream;

struct assay_feature { /* tables are closed by a NULL key */
    const char *key, *classes;
};

enum { ASSAY_MAX_FEATURES = 40 };

/* How many features there are, how many classes feature @feature has, and the product of
 * all those counts. */
int assay_feature_count(const struct assay_operation *operation);
int assay_feature_classes(const struct assay_operation *operation, int feature);
uint64_t assay_feature_tuples(const struct assay_operation *operation);

struct assay_class_text { /* as the table has it, or a name that "*" stands for */
    char text[160];
};
struct assay_class_text assay_feature_class(const struct assay_operation *operation,
                                            int feature, int feature_class);

/* Gives the keys of the feature in @the_case values of that class, drawn from @stream, or
 * the first there are if @stream is NULL. False: a value is out of range, because of the
 * keys it builds on, or a list has no room; the keys may then have any value. */
bool assay_feature_set(struct assay_case *the_case, int feature, int feature_class,
                       struct assay_stream *stream);

/* Whether the first values of the first class depend on other keys. */
bool assay_feature_follows(const struct assay_operation *operation, int feature);

#endif
