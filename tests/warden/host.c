/*
 * Starts the real warden, hands the server's end of its socket to whoever started us, and says how
 * the warden ended. What is then said on that socket is the test's: this program says nothing.
 *
 *   warden-host GUEST_DIR CACHE_DIR|- [DIR...]     fd 3: where the socket goes (SCM_RIGHTS)
 *
 * Environments: 0 has the system's Python and shows DIR..., 1 has no interpreter. On standard
 * output a line of NAME NUMBER for each constant of the wire and each place in a plan; then, when
 * it is over, the warden's exit status.
 */
#include "sandbox/box.h"
#include "warden/warden.h"
#include "wire/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DIRS 4

static const struct constant {
    const char *name;
    uint64_t value;
} constants[] = {
#define VALUE(name)                                                                                \
    {                                                                                              \
#name, name                                                                                \
    }
#define PLACE(field)                                                                               \
    {                                                                                              \
        "plan." #field, offsetof(struct box_plan, field)                                           \
    }
    VALUE(MSG_POOL_START),
    VALUE(MSG_POOL_STOP),
    VALUE(MSG_SPAWN),
    VALUE(MSG_USAGE),
    VALUE(MSG_KILL),
    VALUE(MSG_PING),
    VALUE(MSG_POOL_UP),
    VALUE(MSG_POOL_DOWN),
    VALUE(MSG_SPAWNED),
    VALUE(MSG_SPAWN_FAIL),
    VALUE(MSG_USED),
    VALUE(MSG_GONE),
    VALUE(MSG_READY),
    VALUE(MSG_COMMAND),
    VALUE(MSG_COMMAND_EXIT),
    VALUE(TAG_NUMBER),
    VALUE(TAG_TEXT),
    VALUE(TAG_NAME),
    VALUE(TAG_ZYGOTE),
    VALUE(TAG_BLOB),
    VALUE(TAG_UID),
    VALUE(TAG_UID_MAP),
    VALUE(TAG_ARG),
    VALUE(TAG_STATUS),
    VALUE(UID_BASE),
    VALUE(UID_COUNT),
    VALUE(UID_BLOCKS),
    VALUE(WIRE_BODY_MAX),
    PLACE(disk_bytes),
    PLACE(tmp_bytes),
    PLACE(inodes),
    PLACE(pids),
    PLACE(open_files),
    PLACE(memory_bytes),
    PLACE(cpu_percent),
    PLACE(proxy),
    PLACE(init_uid),
    PLACE(in_cgroup),
    PLACE(nice),
    {"plan", sizeof(struct box_plan)},
};

int main(int argc, char **argv)
{
    const char *dirs[DIRS + 1] = {NULL};
    const struct warden_environment envs[] = {
        {"/usr/bin/python3", "", dirs},
        {NULL,               "", NULL},
    };
    struct err e;
    siginfo_t how = {0};
    int pidfd = -1, sock;

    if (argc < 3 || argc > 3 + DIRS)
        return 2;
    for (int i = 3; i < argc; i++)
        dirs[i - 3] = argv[i];
    const struct warden_config config = {.guest_dir = argv[1],
                                         .cache_dir = strcmp(argv[2], "-") == 0 ? NULL : argv[2],
                                         .environments = envs,
                                         .environment_count = COUNT(envs)};
    sock = warden_start(&config, &pidfd, &e);
    if (sock < 0) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    for (size_t i = 0; i < COUNT(constants); i++)
        printf("%s %" PRIu64 "\n", constants[i].name, constants[i].value);
    printf(".\n");
    fflush(stdout);
    if (wire_send(3, 1, 0, (struct str){0}, &sock, 1) < 0)
        return 1;
    close(sock);
    close(3);
    waitid(P_PIDFD, (id_t)pidfd, &how, WEXITED);
    printf("ended %d %d\n", how.si_code == CLD_EXITED, how.si_status);
    return 0;
}
