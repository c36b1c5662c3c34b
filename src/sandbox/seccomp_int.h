/* Private to the seccomp programs: seccomp.c has the list, seccomp_user.c what is refused on top.
 */
#pragma once

#include "base/base.h"

#include <seccomp.h>

#define LOW_WORD 0xffffffffu /* the kernel looks at 32 bits of these; so must we */

/* Adds a rule. A rule for a call that this libseccomp or this machine does not know changes
 * nothing, and neither does one that says what happens anyway (EACCES). 0, or a negative errno. */
int seccomp_rule(scmp_filter_ctx ctx, uint32_t action, const char *name, unsigned n,
                 const struct scmp_arg_cmp *args);
int seccomp_add_user(scmp_filter_ctx ctx);
