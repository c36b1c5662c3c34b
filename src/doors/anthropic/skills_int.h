/*
 * Skills: folders of instructions and scripts that clients upload, or that come with the program,
 * and that messages mount into their containers. Private to skills.c, the routes, skill_upload.c,
 * skill_download.c, skill_front_matter.c, skill_own.c, and skill_mount.c.
 *
 * A skill of a client is an item of the service, and so is each version of it, whose parent it is,
 * and each file of a version, with its bytes.
 */
#pragma once

#include "doors/anthropic/turn_int.h"

#define SKILL_PREFIX     "skill_"
#define SKILL_VERSION    "skillver_"
#define SKILL_KIND       "skill"
#define SKILL_KIND_V     "skill_version"
#define SKILL_KIND_FILE  "skill_file"
#define SKILL_FILE       "SKILL.md"
#define SKILL_OF_CLIENT  "custom"    /* what SDKs call a skill that was uploaded, */
#define SKILL_OF_SERVER  "anthropic" /* and one of the server's own */
#define SKILL_DIR        "skills"    /* in the workspace; /skills is a link to it */
#define SKILLS_KEPT      500         /* of a tenant */
#define SKILL_VERSIONS   5000        /* likewise */
#define SKILL_BYTES      (30 * MiB)
#define SKILL_MATTER_MAX (64 * KiB) /* of SKILL.md, that is read for its front matter */
#define SKILLS_MOUNTED   20         /* of one message */

/* --- skills.c --- */

/* Answers where the skill of the path is the program's own, which nobody changes. */
bool skill_is_fixed(struct request *r);
/* Answers, with what is wrong or with the item. */
void skill_fail(struct request *r, const struct err *failed);
void skill_on_one(void *arg, const struct item_row *item, const struct err *failed);
/* Whether the version was found, as one of the skill that the path names. If not, answers. */
bool skill_is_version(struct request *r, const struct item_row *item, const struct err *failed);
void skill_on_version(void *arg, const struct item_row *item, const struct err *failed);

/* --- skill_front_matter.c --- */

struct skill_front_matter {
    char name[65];
    char description[1025];
};
int skill_front_matter_read(struct str text, struct skill_front_matter *ret,
                            struct err *e) MUST_CHECK;

/* --- skill_own.c --- */

/* The name of one of the program's own, which is its id; NULL: there are no more. */
const char *own_skill_at(size_t i);
bool own_skill_is(struct str id);
/* Its row, and that of its version; to be freed with item_row_done(). False: it has no such
 * version. */
void own_skill_row(const char *name, struct item_row *ret);
bool own_version_row(const char *name, struct str version, struct item_row *ret);
/* Adds its files, as turn.skill_files has them, with a uri in place of a size. */
void own_skill_mount(const char *name, json_t *ret);
