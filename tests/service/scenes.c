/* What the service promises, scene by scene. Each is run by name from test_service.py. */
#include "stage.h"

/* What the scenes are set in. Sleep comes after idle_ms. */
static const struct setting awake = {.ready = 1};
static const struct setting parked = {.ready = 8, .max_sessions = 1000, .tenant_sessions = 1000};
static const struct setting tired = {.idle_ms = 200, .retention_ms = 1000};
static const struct setting sleepy = {.idle_ms = 700};
static const struct setting sleepy_later = {.idle_ms = 1500};
static const struct setting mortal = {.lifetime_ms = 3000};
static const struct setting narrow = {.idle_ms = 500, .disk_bytes = 3 * MiB / 2};
static const struct setting full = {.idle_ms = 2000, .max_sessions = 3, .tenant_sessions = 2};

static const struct setting crowded = {.idle_ms = 60, .lifetime_ms = 900, .max_sessions = 5};

static const struct setting cold = {.ready = 0};
static const struct setting poor = {.ready = 1, .reserve = UINT64_MAX};
static const struct setting tidy = {.ready = 0, .retention_ms = 1000, .tenant_bytes = 10};
static const struct setting meaner = {.ready = 1, .held_bytes = 2560};
static const struct setting mean = {.ready = 1, .held_bytes = 10 * KiB};

static const struct setting asking = {
    .ready = 1, .approval = POLICY_ALWAYS_ASK, .approval_by = APPROVAL_BY_EITHER};
static const struct setting hasty = {.ready = 0,
                                     .approval = POLICY_ALWAYS_ASK,
                                     .approval_by = APPROVAL_BY_EITHER,
                                     .approval_ms = 300};

struct scene {
    const char *name;
    void (*play)(void);
    const struct setting *setting;
    bool alone; /* false: by a test of its own */
};

static const struct scene scenes[] = {
    {"sleeps_and_wakes",                             scene_sleeps_and_wakes,                  &sleepy,       true },
    {"sleeps_without_loss",                          scene_sleeps_without_loss,               &sleepy,       true },
    {"lifetime_ends",                                scene_lifetime_ends,                     &mortal,       true },
    {"what_came_late_is_saved",                      scene_what_came_late_is_saved,           &sleepy_later, true },
    {"lost_sandbox",                                 scene_lost_sandbox,                      &awake,        true },
    {"restart_keeps_files",                          scene_restart_keeps_files,               &awake,        true },
    {"named_sessions",                               scene_named_sessions,                    &sleepy_later, true },
    {"left_behind",                                  scene_left_behind,                       &tired,        false},
    {"expired_sessions_go",                          scene_expired_sessions_go,               &tired,        false},
    {"one_shot",                                     scene_one_shot,                          &awake,        true },
    {"cells_keep_their_order",                       scene_cells_keep_their_order,            &sleepy,       true },
    {"leaving_interrupts",                           scene_leaving_interrupts,                &awake,        true },
    {"background_goes_on",                           scene_background_goes_on,                &awake,        true },
    {"detached_goes_on",                             scene_detached_goes_on,                  &awake,        true },
    {"one_that_stays",                               scene_one_that_stays,                    &awake,        true },
    {"long_output_is_on_record",                     scene_long_output_is_on_record,          &awake,        true },
    {"variables_of_the_environment",                 scene_variables_of_the_environment,      &sleepy,       true },
    {"commands_run_beside",                          scene_commands_run_beside,               &awake,        true },
    {"uploads",                                      scene_uploads,                           &sleepy_later, true },
    {"bytes_in_memory",                              scene_bytes_in_memory,                   &sleepy_later, true },
    {"deleted_files_stay_away",                      scene_deleted_files_stay_away,           &sleepy_later, true },
    {"looking_while_it_runs",                        scene_looking_while_it_runs,             &awake,        true },
    {"disk_is_limited",                              scene_disk_is_limited,                   &narrow,       true },
    {"files_given_with_code",                        scene_files_given_with_code,             &awake,        true },
    {"files_expire",                                 scene_files_expire,                      &tidy,         true },
    {"files_in_pages",                               scene_files_in_pages,                    &tidy,         true },
    {"files_have_a_quota",                           scene_files_have_a_quota,                &tidy,         true },
    {"busy_limits",                                  scene_busy_limits,                       &full,         true },
    {"tenants_apart",                                scene_tenants_apart,                     &sleepy_later, true },
    {"crowd",                                        scene_crowd,                             &crowded,      true },
    {"crowd_is_closed",                              scene_crowd_is_closed,                   &crowded,      true },
    {"left_before_it_was_up",                        scene_left_before_it_was_up,             &cold,         true },
    {"deleted_with_work_waiting",                    scene_deleted_with_work_waiting,         &awake,        true },
    {"many_wait_for_one",                            scene_many_wait_for_one,                 &sleepy,       true },
    {"closed_while_waking",                          scene_closed_while_waking,               &sleepy,       true },
    {"lost_while_placing",                           scene_lost_while_placing,                &awake,        true },
    {"saving_fails_at_the_end_of_a_life",            scene_saving_fails_at_the_end_of_a_life, &mortal,       true },
    {"a_file_cannot_be_opened_at_the_end_of_a_life",
     scene_a_file_cannot_be_opened_at_the_end_of_a_life,                                      &mortal,       true },
    {"saved_later",                                  scene_saved_later,                       &awake,        true },
    {"blind_for_a_while",                            scene_blind_for_a_while,                 &awake,        true },
    {"disk_is_nearly_full",                          scene_disk_is_nearly_full,               &poor,         true },
    {"record_has_room",                              scene_record_has_room,                   &meaner,       true },
    {"code_has_room",                                scene_code_has_room,                     &mean,         true },
    {"any_text_is_on_record",                        scene_any_text_is_on_record,             &awake,        true },
    {"lane_holds",                                   scene_lane_holds,                        &awake,        true },
    {"lane_is_full",                                 scene_lane_is_full,                      &awake,        true },
    {"user_agrees",                                  scene_user_agrees,                       &asking,       true },
    {"user_cannot_be_asked_after_all",               scene_user_cannot_be_asked_after_all,    &asking,       true },
    {"approver_decides",                             scene_approver_decides,                  &asking,       true },
    {"nobody_waits",                                 scene_nobody_waits,                      &asking,       true },
    {"nobody_agrees_in_time",                        scene_nobody_agrees_in_time,             &hasty,        true },
    {"closed_while_asked",                           scene_closed_while_asked,                &asking,       true },
    {"draining",                                     scene_draining,                          &awake,        true },
    {"closed_in_the_middle",                         scene_closed_in_the_middle,              &awake,        false},
    {"after_the_closing",                            scene_after_the_closing,                 &awake,        false},
    {"until_killed",                                 scene_until_killed,                      &awake,        false},
    {"after_the_kill",                               scene_after_the_kill,                    &awake,        false},
    {"speed",                                        scene_speed,                             &parked,       false},
};

int main(int argc, char **argv)
{
    const struct scene *scene = NULL;
    struct setting s;

    for (size_t i = 0; i < COUNT(scenes); i++) {
        if (argc == 2 && strcmp(argv[1], "--list") == 0 && scenes[i].alone)
            puts(scenes[i].name);
        if (argc == 4 && strcmp(argv[1], scenes[i].name) == 0)
            scene = &scenes[i];
    }
    if (!scene)
        return argc == 2 ? 0 : 2;
    s = *scene->setting;
    s.guest_dir = argv[2];
    s.data_dir = argv[3];
    stage_up(&s);
    scene->play();
    stage_down();
    return 0;
}
