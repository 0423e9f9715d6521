/* SPDX-License-Identifier: MIT */
#include "verify/run/progress.h"

#include "verify/data/clock.h"
#include "verify/worker/process.h"

#include <inttypes.h>
#include <math.h>
#include <unistd.h>

enum { QUIET_SECONDS = 3, SECONDS_BETWEEN_LINES = 60 };
static const double seconds_between_renewals = 0.2;

struct assay_progress assay_progress_begin(FILE *stream, int64_t cases, int64_t skipped)
{
    const double began = assay_clock_seconds();
    return (struct assay_progress){ .stream = stream,
                                    .is_terminal = isatty(fileno(stream)),
                                    .cases = cases,
                                    .skipped = skipped,
                                    .done = skipped,
                                    .began = began,
                                    .said = began };
}

static void print_time(FILE *stream, double seconds)
{
    if (seconds < 90)
        fprintf(stream, "%.0f s", seconds);
    else if (seconds < 5400)
        fprintf(stream, "%.0f min", seconds / 60);
    else
        fprintf(stream, "%.1f h", seconds / 3600);
}

/* By the cases or by the limit, whichever comes first. */
static void print_left(const struct assay_progress *progress, double elapsed)
{
    const int64_t ran = progress->done - progress->skipped;
    double left = progress->seconds > 0 ? progress->seconds - elapsed : (double)INFINITY;
    bool is_certain = true;
    if (progress->cases && ran > 0) {
        const double needed =
            elapsed / (double)ran * (double)(progress->cases - progress->done);
        is_certain = needed > left;
        if (!is_certain) left = needed;
    }
    if (isinf(left)) return;
    fputs(is_certain ? ", " : ", about ", progress->stream);
    print_time(progress->stream, left > 0 ? left : 0);
    fputs(" left", progress->stream);
}

static void print_rate(const struct assay_progress *progress, double elapsed)
{
    const double rate = (double)(progress->done - progress->skipped) / elapsed;
    if (rate > 0) fprintf(progress->stream, ", %.*f cases/s", rate < 10 ? 1 : 0, rate);
}

void assay_progress_tell(struct assay_progress *progress)
{
    const double time = assay_clock_seconds();
    const double pause =
        progress->is_terminal ? seconds_between_renewals : SECONDS_BETWEEN_LINES;
    if (time - progress->began < QUIET_SECONDS || time - progress->said < pause) return;
    progress->said = time;
    fprintf(progress->stream, "%s%" PRId64,
            progress->is_terminal ? "\r\033[K" : "assay: ", progress->done);
    if (progress->cases) fprintf(progress->stream, " of %" PRId64, progress->cases);
    fprintf(progress->stream, " cases done, %" PRId64 " failed", progress->failed);
    if (progress->findings)
        fprintf(progress->stream, " (%" PRId64 " finding%s)", *progress->findings,
                *progress->findings == 1 ? "" : "s");
    print_left(progress, time - progress->began);
    print_rate(progress, time - progress->began);
    if (!progress->is_terminal) fputc('\n', progress->stream);
    fflush(progress->stream);
    progress->is_shown = progress->is_terminal;
}

void assay_progress_hide(struct assay_progress *progress)
{
    if (!progress->is_shown) return;
    fputs("\r\033[K", progress->stream);
    fflush(progress->stream);
    progress->is_shown = false;
}
