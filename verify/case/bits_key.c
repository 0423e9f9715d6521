/* SPDX-License-Identifier: MIT */
/* Explicit elements of a case, to and from text. */
#include "verify/case/bits_key.h"

#include "verify/case/number.h"

#include <inttypes.h>
#include <string.h>

_Static_assert(ASSAY_MAX_EXPLICIT_BITS == 64, "the limit that a message names");
enum { MAX_INDICES = sizeof((struct assay_explicit_bits *)0)->index / sizeof(int64_t) };

static const char name_characters[] = "abcdefghijklmnopqrstuvwxyz"
                                      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789_";

/* Why @text, which is written into, is not TENSOR[.INDEX...]:HEX; NULL if it is. */
static const char *parse_element(char *text, struct assay_explicit_bits *element)
{
    memset(element, 0, sizeof(*element));
    char *const colon = strchr(text, ':');
    if (!colon) return "has no ':'";
    *colon = '\0';
    uint64_t bits;
    switch (assay_number_hex(colon + 1, 8, &bits)) {
    case ASSAY_NUMBER_VALID: element->bits = (uint32_t)bits; break;
    case ASSAY_NUMBER_MALFORMED: return "has no hexadecimal digits after ':'";
    case ASSAY_NUMBER_TOO_PRECISE: /* of fractions only */
    case ASSAY_NUMBER_TOO_LARGE: return "has more than 8 hexadecimal digits";
    }

    char *rest = text;
    const char *const tensor = strsep(&rest, ".");
    const size_t letters = strlen(tensor);
    if (letters == 0 || tensor[strspn(tensor, name_characters)])
        return "does not begin with the name of a tensor";
    if (letters >= sizeof(element->tensor)) return "has too long a tensor name";
    memcpy(element->tensor, tensor, letters);

    for (const char *index; (index = strsep(&rest, "."));) {
        if (element->rank == MAX_INDICES) return "has too many indices";
        uint64_t number = 0;
        const enum assay_number form = assay_number_unsigned(index, &number);
        if (form == ASSAY_NUMBER_MALFORMED) return "has an index that is no integer";
        if (form == ASSAY_NUMBER_TOO_LARGE || number > INT64_MAX)
            return "has an index out of range";
        element->index[element->rank++] = (int64_t)number;
    }
    return NULL;
}

static bool is_same_element(const struct assay_explicit_bits *a,
                            const struct assay_explicit_bits *b)
{
    return strcmp(a->tensor, b->tensor) == 0 && a->rank == b->rank &&
           memcmp(a->index, b->index, sizeof(a->index)) == 0;
}

static const char *add_element(char *text, struct assay_case *the_case)
{
    const int count = the_case->explicit_bits_count;
    if (count == ASSAY_MAX_EXPLICIT_BITS) return "is beyond the limit of 64 elements";

    struct assay_explicit_bits *const element = &the_case->explicit_bits[count];
    const char *const problem = parse_element(text, element);
    if (problem) return problem;
    for (int i = 0; i < count; i++)
        if (is_same_element(&the_case->explicit_bits[i], element))
            return "names an element for the second time";
    the_case->explicit_bits_count++;
    return NULL;
}

enum assay_status assay_bits_key_parse(const char *value, struct assay_case *the_case,
                                       struct assay_message *message)
{
    char copy[ASSAY_MAX_CASE_LINE];
    struct assay_text text = assay_text_open(copy, sizeof(copy));
    assay_text_add(&text, "%s", value);

    the_case->explicit_bits_count = 0;
    char *rest = copy;
    for (char *element; (element = strsep(&rest, ","));) {
        const struct assay_excerpt shown = assay_excerpt(element);
        const char *const problem = add_element(element, the_case);
        if (problem)
            return assay_fail(message, ASSAY_REFUSED,
                              "'%s' in bits= %s; bits takes TENSOR[.INDEX...]:HEX[,...]",
                              shown.text, problem);
    }
    return ASSAY_RAN;
}

void assay_bits_key_format(const struct assay_case *the_case, struct assay_text *text)
{
    for (int i = 0; i < the_case->explicit_bits_count; i++) {
        const struct assay_explicit_bits *const element = &the_case->explicit_bits[i];
        assay_text_add(text, "%s%s", i ? "," : "", element->tensor);
        for (int j = 0; j < element->rank; j++)
            assay_text_add(text, ".%" PRId64, element->index[j]);
        assay_text_add(text, ":%" PRIx32, element->bits);
    }
}
