/*
 * Environments: Pythons with packages of their own, each in a folder with its name.
 *
 * A folder is ready once it holds the file retort.json, which comes last; without it, it is a
 * creation that was interrupted, and no pool can use it.
 */
#pragma once

#include "cli/cli.h"

#include <limits.h>

#define ENVIRONMENT_NAME_MAX  63
#define ENVIRONMENTS_PATH_MAX (PATH_MAX / 2)

/* The folder of all environments: that of the settings, or the default of this user. */
int environments_find(const struct settings *s, char ret[ENVIRONMENTS_PATH_MAX],
                      struct err *e) MUST_CHECK;
/* Wherever a setting `python` has the name of an environment, puts the path of its interpreter. A
 * name that is neither an environment nor a program in PATH is refused. */
int environments_resolve(struct settings *s, struct err *e) MUST_CHECK;
