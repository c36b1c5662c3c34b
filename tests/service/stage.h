/*
 * The service from the inside of its own API, on real sandboxes and a real store, with
 * no door in front of it. A scene reads top to bottom: each call here turns the loop
 * until the answer has come.
 */
#pragma once

#include "loop/loop.h"
#include "service/service.h"

#include <stdio.h>
#include <stdlib.h>

#define TEXT_MAX    8192
#define PATIENCE_MS 60000

/* Code that waits until somebody puts a file there. */
#define UNTIL_GO "import os, time\nwhile not os.path.exists('go'): time.sleep(.01)\n"

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                     \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

extern struct loop *loop;
extern struct service *service;
extern struct caller alice, bob;

struct setting {
    const char *guest_dir, *data_dir;
    uint64_t idle_ms, lifetime_ms, ready, max_sessions, tenant_sessions, retention_ms;
    uint64_t disk_bytes, held_bytes, reserve, tenant_bytes, approval_ms;
    enum approval_policy approval;
    enum approval_by approval_by;
};
void stage_up(const struct setting *s);
void stage_down(void);

void wait_for(const bool *flag, const char *what);
void pause_ms(uint64_t ms);

/* --- answers --- */

struct answer {
    bool done;
    struct err err; /* ERR_NONE: it went well */
    char id[ID_MAX];
    enum session_state state;
    bool existed, has_note;
    int64_t executions;
    size_t count;
    char text[TEXT_MAX]; /* of a file, or of a list: "path:size path:size" */
};

void on_session(void *arg, const struct session_info *info, const struct err *failed);
void on_done(void *arg, const struct err *failed);
void on_space_files(void *arg, const struct space_file *files, size_t count,
                    const struct err *failed);

/* Each must succeed. */
void create(struct answer *a, const struct session_spec *spec);
const char *new_session(void); /* its id, valid until the next call */
enum session_state state_of(const char *id);
void wait_state(const char *id, enum session_state s);
void get_session(struct answer *a, const struct caller *c, const char *id);
void delete_session(struct answer *a, const struct caller *c, const char *id);
struct blob *blob_of(const char *text);
void put_file(struct answer *a, const char *id, const char *path, const char *text);
void list_files(struct answer *a, const struct caller *c, const char *id);
void read_file(struct answer *a, const struct caller *c, const char *id, const char *path);
void wait_file(const char *id, const char *path, const char *text);

/* --- executions --- */

struct run {
    struct execution *job;
    bool queued, done;
    unsigned order; /* 1 for the first end of the scene */
    struct err err;
    char id[ID_MAX], session[ID_MAX];
    enum outcome_status status;
    bool state_lost;
    uint64_t engine_us;   /* of its time, in the engine */
    char text[TEXT_MAX];  /* stdout and result */
    char notes[TEXT_MAX]; /* status events */
    char files[TEXT_MAX]; /* "path " each */
    bool background;      /* may have begun before it is told of */
    bool leave_when_queued;
    void (*on_end)(struct run *r); /* or when it is left; or NULL */
    bool (*on_ask)(struct run *r, const struct approval_info *info); /* or NULL */
    char approval[ID_MAX];
    enum approval_verdict verdict;
};

void start(struct run *r, const struct caller *c, const struct exec_spec *spec);
void finish(struct run *r);
/* Runs a cell that must end well and returns what it said. */
const char *run(const char *session, const char *code);
void run_into(struct run *r, const char *session, const char *code);

/* --- records --- */

struct record {
    bool done;
    enum err_kind failed;
    char status[32], text[TEXT_MAX];
    bool has_outcome;
};
void get_record(struct record *r, const struct caller *c, const char *id);
/* Until it is on record as running, and has said this. */
void wait_said(const struct run *r, const char *text);

/* A copy of a few ids. */
char *keep(const char *s);

/* Code that defines bad(), which ends its sandbox. */
extern const char bad_packet[];

/* --- the scenes --- */

void scene_sleeps_and_wakes(void);
void scene_sleeps_without_loss(void);
void scene_lifetime_ends(void);
void scene_what_came_late_is_saved(void);
void scene_lost_sandbox(void);
void scene_restart_keeps_files(void);
void scene_named_sessions(void);
void scene_expired_sessions_go(void);
void scene_one_shot(void);
void scene_cells_keep_their_order(void);
void scene_leaving_interrupts(void);
void scene_background_goes_on(void);
void scene_detached_goes_on(void);
void scene_one_that_stays(void);
void scene_long_output_is_on_record(void);
void scene_variables_of_the_environment(void);
void scene_commands_run_beside(void);
void scene_uploads(void);
void scene_bytes_in_memory(void);
void scene_deleted_files_stay_away(void);
void scene_looking_while_it_runs(void);
void scene_disk_is_limited(void);
void scene_files_given_with_code(void);
void scene_files_expire(void);
void scene_files_in_pages(void);
void scene_files_have_a_quota(void);
void scene_busy_limits(void);
void scene_tenants_apart(void);
void scene_draining(void);
void scene_lane_holds(void);
void scene_lane_is_full(void);
void scene_user_agrees(void);
void scene_user_cannot_be_asked_after_all(void);
void scene_approver_decides(void);
void scene_nobody_waits(void);
void scene_nobody_agrees_in_time(void);
void scene_closed_while_asked(void);
void scene_closed_in_the_middle(void);
void scene_after_the_closing(void);
void scene_until_killed(void);
void scene_after_the_kill(void);
void scene_speed(void);
void scene_left_behind(void);
void scene_crowd(void);
void scene_crowd_is_closed(void);
void scene_left_before_it_was_up(void);
void scene_deleted_with_work_waiting(void);
void scene_many_wait_for_one(void);
void scene_closed_while_waking(void);
void scene_lost_while_placing(void);
void scene_saving_fails_at_the_end_of_a_life(void);
void scene_a_file_cannot_be_opened_at_the_end_of_a_life(void);
void scene_saved_later(void);
void scene_blind_for_a_while(void);
void scene_disk_is_nearly_full(void);
void scene_record_has_room(void);
void scene_code_has_room(void);
void scene_any_text_is_on_record(void);
