/* Private to the command line. */
#pragma once

#include "cli/cli.h"
#include "record/record.h"

#include <jansson.h>

#define SECOND_MS 1000ull
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS   (60 * MINUTE_MS)
#define DAY_MS    (24 * HOUR_MS)

/* --- options: the one table --- */

enum option_type {
    OPTION_BOOL,    /* bool */
    OPTION_TEXT,    /* char *; may be empty */
    OPTION_PATH,    /* char *; may not */
    OPTION_HOSTS,   /* char *; words of a host_list */
    OPTION_SIZE,    /* uint64_t, bytes; K, M, G, T */
    OPTION_SECONDS, /* uint64_t, milliseconds; decimals; m, h, d */
    OPTION_CORES,   /* uint64_t, percent of one core; decimals */
    OPTION_COUNT,   /* uint64_t */
    OPTION_MODE,    /* uint64_t, octal */
    OPTION_CHOICE,  /* an enum, by its word in option.choices */
    OPTION_LIST,    /* struct list: may be given again */
    OPTION_WORDS,   /* struct list: separated by commas, and may be given again */
    OPTION_WORK,    /* settings.work: what to execute */
};

enum option_group {
    GROUP_WORK,
    GROUP_FILES,
    GROUP_KEY,
    GROUP_ENVIRONMENT,
    GROUP_SERVER,
    GROUP_ACCESS,
    GROUP_HOUSE,
    GROUP_POOL,
    GROUP_LIMITS,
    GROUP_QWEN,
    GROUP_PRISME,
    GROUP_ANTHROPIC,
    GROUP_UBIK,
    GROUP_MODEL,
    GROUP_AGENT,
    GROUP_OTHER,
    GROUP__COUNT
};

/* Bits of option.commands. */
enum command_id {
    COMMAND_RUN,
    COMMAND_DOCTOR,
    COMMAND_SERVE,
    COMMAND_KEYS,
    COMMAND_MCP,
    COMMAND_ENVIRONMENT,
    COMMAND_REPL,
    COMMAND_STORE,
    COMMAND_BENCH
};

struct option {
    const char *name;
    char letter; /* or 0 */
    enum option_type type;
    enum option_group group;
    unsigned commands; /* which commands take it: IN(COMMAND_*) */
    size_t at;         /* offset in struct settings */
    uint64_t min, max; /* of a number, in the unit it is kept in */
    enum work_kind work;
    const char *metavar;   /* NULL: takes no value */
    const char *choices;   /* OPTION_CHOICE: "text|json", in the order of the enum */
    unsigned not_from;     /* IN(SOURCE_*) that cannot set it */
    const char *also;      /* a variable of another system that sets it, too; or NULL */
    const char *also_unit; /* put after its value; or NULL */
    const char *also_root; /* a variable whose value is a folder: also_unit is below it; or NULL */
    bool secret;           /* shown to nobody */
    const char *unset;     /* the default in words, where a value would say less or is not there */
    const char *text;      /* one sentence */
};

extern const struct option options[];
extern const size_t options_count;

/* The row, or NULL. */
const struct option *option_by_name(struct str name, unsigned commands);
const struct option *option_by_letter(char letter, unsigned commands);
/* The name most like this one, or NULL when none is. */
const char *option_nearest(struct str name, unsigned commands);

/* Number of single-letter edits between two names, transpositions counted as two. */
unsigned edit_distance(struct str a, struct str b);

/* Whether each pool has its own. */
bool option_is_pools(const struct option *o);
/* Whether each model has its own; below [model NAME] its name begins after "model-". */
bool option_is_models(const struct option *o);
/* The row's place in struct settings.from. */
size_t option_index(const struct option *o);

/* Sets one option from text. origin names where the text came from ("--memory"). */
int option_set(const struct option *o, struct settings *s, const char *origin, const char *value,
               struct err *e) MUST_CHECK;
/* settings.c. Everything in a copy is the copy's own. */
void pool_copy(struct service_pool *to, const struct service_pool *from);
void pool_done(struct service_pool *p);
void endpoint_copy(struct endpoint_settings *to, const struct endpoint_settings *from);
void list_add(struct list *l, const char *value);
void list_done(struct list *l);
void work_add(struct settings *s, enum work_kind kind, const char *arg);
/* The same for a setting that several sources may give: what a later one says replaces what an
 * earlier one said. */
int setting_set(const struct option *o, struct settings *s, enum source_kind source,
                const char *origin, const char *value, struct err *e) MUST_CHECK;
int pool_set(const struct option *o, struct service_pool *p, const char *origin, const char *value,
             struct err *e) MUST_CHECK;
int endpoint_set(const struct option *o, struct endpoint_settings *m, const char *origin,
                 const char *value, struct err *e) MUST_CHECK;
/* The value in s as the user would write it; empty when it is not set, or secret. */
void option_show(const struct option *o, const struct settings *s, char *ret, size_t size);

/* The default as --help tells it; empty when there is nothing to tell. */
void option_show_default(const struct option *o, const struct settings *defaults, char *ret,
                         size_t size);

struct command {
    const char *name;
    enum command_id id;
    bool takes_work;  /* arguments that are no options are scripts to run */
    bool takes_words; /* they are words for the command to read */
    bool configured;  /* settings come from the environment and the file, too */
    const char *args;
    const char *text;
    const char *notes; /* printed below the options; or NULL */
    int (*main)(const struct settings *s);
};

extern const struct command command_serve;

/* Arguments after the command's name, into settings. */
int settings_parse(struct settings *s, const struct command *c, int argc, const char *const *argv,
                   struct err *e) MUST_CHECK;

/* Everything: file, environment, arguments, each before the next, then checked together. */
int settings_load(struct settings *s, const struct command *c, int argc, const char *const *argv,
                  struct err *e) MUST_CHECK;
/* The file that settings_load() read, in ret; empty when there is none. */
void config_path(const struct settings *s, char *ret, size_t size);
/* RETORT_..., the environment's name of an option. */
#define ENV_NAME_MAX 64
void option_env_name(const struct option *o, char ret[ENV_NAME_MAX]);
/* What is effective, in the words of a file. */
void config_show(const struct settings *s, struct buf *ret);
/* Names of the settings that differ, separated by commas; those in `but` left out. */
void config_differences(const struct settings *a, const struct settings *b, const char *const *but,
                        struct buf *ret);

/* --- the file: name = value below [section] --- */

struct ini_entry {
    char *section, *name, *value; /* owned; name "" where a section begins */
    unsigned line;
};

struct ini {
    struct ini_entry *item; /* owned */
    size_t count;
};

int ini_load(struct ini *ret, const char *path, struct err *e) MUST_CHECK;
void ini_done(struct ini *ini);

/* Writes to standard output. Returns the exit status; a failure is told on standard error. */
int stdout_put(struct str text);
int status_of_err(const struct err *e);  /* the exit status that says whose fault it was */
int command_failed(const struct err *e); /* prints the sentence, returns the exit status */
/* The exit status when a write to standard output has failed. A reader that has gone is no news. */
int stdout_failed(const struct err *e);

const char *help_heading(enum option_group g);
void help_page(const struct command *c, struct buf *ret); /* docs/configuration.md */
void help_command(const struct command *c, struct buf *ret);
void help_program(const struct command *const *commands, size_t count, struct buf *ret);

/* --- folders: of the user's own disk, to be seen in sessions --- */

struct folders {
    struct engine_folder item[FOLDERS_MAX]; /* paths owned */
    size_t count;
};

int folders_open(struct folders *ret, const struct settings *s, struct err *e) MUST_CHECK;
void folders_done(struct folders *f);
/* A folder that the client's user has opened. Too much is refused: / and the home directory. */
int folders_add_root(struct folders *f, const char *path, bool writable, struct err *e) MUST_CHECK;
/* A sentence for a model that begins with `lead`, on the folders from number `from` on, owned;
 * NULL: there are none. */
char *folders_tell(const struct folders *f, const char *lead, size_t from);

/* --- source: what is to be executed, read and checked before anything starts --- */

struct source {
    enum exec_kind kind;
    const char *label; /* borrowed from settings: "-c", "-", "--shell" or the script's name */
    char *code;        /* owned */
    size_t n;
};

struct sources {
    struct source *item; /* owned */
    size_t count;
};

int sources_load(struct sources *ret, const struct settings *s, struct err *e) MUST_CHECK;
void sources_done(struct sources *ss);

/* --- repl: cells from standard input, one at a time --- */

struct repl {
    struct buf rest; /* read, and not yet part of a cell */
    bool over;       /* the input has ended */
};

void repl_init(struct repl *in);
void repl_done(struct repl *in);
/* Waits for a cell: false at the end of input. ret->code is owned by the caller. */
bool repl_read(struct repl *in, struct source *ret);
/* Whether what was typed so far is a cell, or more has to come. */
bool repl_is_whole(struct str cell);
/* run.c: the executions of the command line, or of a person who types them. */
int run_cells(const struct settings *s, bool typed);
int repl_main(const struct settings *s);

/* A file to be put into the workspace, open. */
struct input {
    int fd;           /* owned */
    const char *name; /* borrowed from settings: its base name */
};

struct inputs {
    struct input *item; /* owned */
    size_t count;
};

int inputs_open(struct inputs *ret, const struct settings *s, struct err *e) MUST_CHECK;
void inputs_done(struct inputs *in);

/* --- outbox: bytes that our output streams have not taken yet --- */

struct term;
struct parcel;

struct outbox {
    struct parcel *first; /* owned */
    struct parcel **end;
};

void outbox_init(struct outbox *o);
void outbox_done(struct outbox *o);
/* Never blocks: writes what the streams take, keeps the rest. */
void outbox_put(struct outbox *o, struct term *to, struct str s);
void outbox_push(struct outbox *o);
/* The fd that must become writable before outbox_push() gets on; -1 when nothing is left. */
int outbox_waits_for(const struct outbox *o);
/* Blocks until nothing is left. */
void outbox_wait(struct outbox *o);

/* --- term: one of our output streams, safe to point at a terminal --- */

struct term {
    struct outbox *box; /* borrowed */
    int fd;             /* borrowed */
    bool tty;
    bool mid_line; /* the last byte said was no newline */
    bool failed;   /* a write failed; nothing more is written */
    int sys;       /* errno of that */
    enum { TERM_TEXT, TERM_ESC, TERM_CSI, TERM_STRING } state;
    bool coloured;
    char held[40]; /* a control sequence that has not ended */
    size_t held_n;
    char torn[4]; /* a character that has not ended */
    size_t torn_n;
};

void term_init(struct term *t, struct outbox *box, int fd, bool tty);
/* Bytes of ours, as they are. */
void term_put(struct term *t, struct str s);
/* Bytes of the guest: as they are into a pipe or file; to a terminal only text and colours. */
void term_guest(struct term *t, struct str s);
/* The guest has said what it had to say: colours off, half a sequence forgotten. */
void term_settle(struct term *t);
/* A line of ours, begun on a line of its own. It stays one line whatever it quotes. */
void term_line(struct term *t, const char *fmt, ...) PRINTF(2, 3);

/* --- artifact_export.c: what the session made, into --out or into one line of text --- */

struct made {
    char *path; /* owned */
    uint64_t size;
    char *mime; /* owned */
    bool too_large;
    bool kept;
};

struct artifacts {
    int dir;           /* owned; -1: nothing is kept */
    const char *out;   /* borrowed */
    uint64_t max;      /* of one file */
    struct made *made; /* owned */
    size_t count;
    unsigned figures;
};

int artifacts_open(struct artifacts *k, const struct settings *s, struct err *e) MUST_CHECK;
void artifacts_done(struct artifacts *k);
/* Takes note of a file of the workspace and copies it. */
int artifacts_file(struct artifacts *k, struct session *s, const struct event *ev,
                   struct err *e) MUST_CHECK;
/* Saves an image that was displayed; its name in ret, empty when nothing is kept. */
int artifacts_figure(struct artifacts *k, struct session *s, const struct mime_part *image,
                     char ret[NAME_SHOWN], struct err *e) MUST_CHECK;
/* One line about all of it; empty when nothing was made. */
int artifacts_summary(const struct artifacts *k, struct buf *ret, struct err *e) MUST_CHECK;

/* Writes a file below dir through a temporary name. path is a stranger's: never outside of dir,
 * never through a link. src: read to its end, at most max bytes. */
int beneath_write(int dir, struct str path, int src, uint64_t max, struct err *e) MUST_CHECK;
int beneath_write_bytes(int dir, struct str path, struct str bytes, struct err *e) MUST_CHECK;

/* --- image --- */

/* The part of a bundle that is a picture, the best first; or NULL. */
const struct mime_part *image_part(const struct event *ev);
const char *image_suffix(struct str mime); /* ".png", or NULL when it is no picture */
/* Width and height of a PNG. */
bool png_size(struct str data, uint32_t *ret_width, uint32_t *ret_height);

/* --- show: events as text; json: events as one document --- */

struct show {
    struct outbox box;
    struct term out, err;
};

void show_init(struct show *sh);
void show_done(struct show *sh);
/* figure: the name under which an image of this event was saved, or "". */
void show_event(struct show *sh, const struct event *ev, const char *figure);
void show_outcome(struct show *sh, const struct outcome *o);

struct doc {
    json_t *root;                 /* owned */
    json_t *executions;           /* borrowed from root */
    struct transcript transcript; /* of the execution in hand */
};

void doc_init(struct doc *d);
void doc_done(struct doc *d);
void doc_begin(struct doc *d, const struct source *src);
void doc_event(struct doc *d, const struct event *ev);
void doc_outcome(struct doc *d, const struct outcome *o);
/* The whole document, owned by the caller; NULL when memory does not suffice. failed: what kept us
 * from finishing, or NULL. */
char *doc_print(struct doc *d, int status, const struct err *failed);
