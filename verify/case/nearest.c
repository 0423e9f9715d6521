/* SPDX-License-Identifier: MIT */
/* Which name a misspelt word was meant to be. */
#include "verify/case/message.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

enum { MAX_LETTERS = 64 };

static int lower(char letter)
{
    return tolower((unsigned char)letter);
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Damerau-Levenshtein distance in its optimal string alignment form, by rows: row i holds
 * the distances from the first i letters of @a to each beginning of @b. */
static int edit_distance(const char *a, int a_letters, const char *b, int b_letters)
{
    int rows[3][MAX_LETTERS + 1];
    for (int j = 0; j <= b_letters; j++)
        rows[0][j] = j;

    for (int i = 1; i <= a_letters; i++) {
        int *const row = rows[i % 3];
        const int *const above = rows[(i + 2) % 3], *const second = rows[(i + 1) % 3];
        row[0] = i;
        for (int j = 1; j <= b_letters; j++) {
            const bool is_same = lower(a[i - 1]) == lower(b[j - 1]);
            row[j] = smaller(smaller(above[j], row[j - 1]) + 1, above[j - 1] + !is_same);
            const bool is_swapped = i > 1 && j > 1 &&
                                    lower(a[i - 1]) == lower(b[j - 2]) &&
                                    lower(a[i - 2]) == lower(b[j - 1]);
            if (is_swapped) row[j] = smaller(row[j], second[j - 2] + 1);
        }
    }
    return rows[a_letters % 3][b_letters];
}

/* Twice the edits from @word to @name, INT_MAX if too many. The half edit less decides
 * between names at the same distance: where one begins with the other comes first. */
static int half_edits(const char *word, const char *name)
{
    const size_t word_letters = strlen(word), name_letters = strlen(name);
    if (word_letters > MAX_LETTERS || name_letters > MAX_LETTERS) return INT_MAX;

    const int letters = (int)word_letters, name_length = (int)name_letters;
    const int distance = edit_distance(word, letters, name, name_length);
    if (distance == 0) return 0;
    if (letters >= 2 && strncasecmp(word, name, word_letters) == 0) return 1;

    const int allowed = letters < 6 ? 1 : letters / 3;
    const int longest = letters > name_length ? letters : name_length;
    if (distance > allowed || distance == longest) return INT_MAX;
    return 2 * distance - (strncasecmp(word, name, name_letters) == 0);
}

const char *assay_nearest(const char *word, const char *const *names)
{
    const char *nearest = NULL;
    int least = INT_MAX;
    for (; *names; names++) {
        const int edits = half_edits(word, *names);
        if (edits >= least) continue;
        least = edits;
        nearest = *names;
    }
    return nearest;
}
