/* SPDX-License-Identifier: MIT */
/* Random cases of an operation, from its table of features (feature.h). All is a pure
 * function of the arguments. */
#ifndef ASSAY_VERIFY_OPERATION_DRAW_H
#define ASSAY_VERIFY_OPERATION_DRAW_H

#include "verify/operation/operation.h"

/* The case of that tuple, a number below assay_feature_tuples() whose digits are the
 * classes, that of the first feature the lowest; @stream gives the values inside the
 * classes and the case's seed.
 *
 * At first every key has the first value of its first class: together they are the
 * smallest case. Then each feature in the order of the table, but that required sizes
 * at its beginning take turns at being first and largest, gets a value of its class
 * such that bind and check_numerics accept the case and it costs at most
 * @multiply_adds, memory and outputs to judge counted in, else, where a few draws give
 * none, a value of the next class, cyclically; where no class has one it keeps its
 * first. Three times the cost of the smallest case are always granted.
 *
 * A case may prove nothing: no output at all, or one constant throughout.
 *
 * @classes, if not NULL, receives for each of the assay_feature_count() features the
 * class that the case really has. */
void assay_draw_tuple(const struct assay_operation *operation, uint64_t tuple,
                      struct assay_stream *stream, double multiply_adds,
                      struct assay_case *the_case, int *classes);

/* The same with a tuple that is drawn as well. */
void assay_draw(const struct assay_operation *operation, struct assay_stream *stream,
                double multiply_adds, struct assay_case *the_case);

#endif
