/* SPDX-License-Identifier: MIT */
/* `assay worker`: the process in which a supervisor of ours runs a plugin; nobody starts
 * it by hand. */
#include "verify/command/command.h"
#include "verify/worker/serve.h"

#include <stdio.h>

int assay_command_worker(int argc, char **argv)
{
    const int status = assay_worker_serve(argc, argv);
    if (status == 2)
        fputs("assay: worker is what `assay verify --candidate plugin:FILE.so` starts by "
              "itself; use that\n",
              stderr);
    return status;
}
