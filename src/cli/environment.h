/*
 * Environments: Pythons with packages of their own, each in a folder with its name.
 *
 * The file retort.json is written last, so a folder that holds it is ready. A folder without it was
 * left by a creation that was interrupted, and no pool can use it.
 */
#pragma once

#include "cli/cli.h"

#include <limits.h>

#define ENVIRONMENT_NAME_MAX  63
#define ENVIRONMENTS_PATH_MAX (PATH_MAX / 2)

/* Wherever a setting `python` has the name of an environment, puts the path of its interpreter. A
 * name that is neither an environment nor a program in PATH is refused. */
int environments_resolve(struct settings *s, struct err *e) MUST_CHECK;
