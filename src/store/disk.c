/*
 * The disk under the store: whether it accepts what is written.
 *
 * A spare file reserves some space for the records of code that runs while other files fill the
 * disk. When the disk gets low, the store deletes the spare file and reports that it is full, so no
 * execution begins whose record could not be kept. When there is room again, the store makes the
 * file anew. The store also counts as full after other failures (read-only, an error of the disk, a
 * quota), until its thread finds that the disk accepts writes again.
 */
#include "store/store_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SPARE_NAME   "retort.spare"
#define SPARE_SIZE   (16 * MiB)
#define SPARE_SHARE  32          /* of a small disk */
#define RESERVE      (512 * MiB) /* that blobs leave alone: without the database all work ends */
#define RESERVE_PART 20          /* of a small disk */
#define INODES_LOW   16
#define ROOM_US      1000 /* that there was room is as good as that there is */
#define TRIAL_SIZE   (64 * KiB)

/* --- what went wrong --- */

int disk_blame(struct err *e)
{
    static const struct {
        int sys;
        const char *text;
    } causes[] = {
        {ENOSPC, "the disk of the server is full: nothing can be kept before space is freed there, "
                 "or sessions and files are deleted"                             },
        {EDQUOT,
         "the disk quota of the server is used up: nothing can be kept before it is raised, "
         "or sessions and files are deleted"                                                     },
        {EROFS,  "the disk of the server is read-only: nothing can be kept before it is writable"},
        {EIO,    "the disk of the server has an error: nothing can be kept before it is mended"  },
    };

    for (size_t i = 0; e->kind == ERR_HOST && i < COUNT(causes); i++)
        if (causes[i].sys == e->sys) {
            err_set(e, ERR_FULL, "%s", causes[i].text);
            e->sys = causes[i].sys;
        }
    return -1;
}

static int set_full(struct err *e, int sys)
{
    *e = (struct err){.kind = ERR_HOST, .sys = sys};
    return disk_blame(e);
}

/* --- how much is left --- */

static uint64_t part_of(const struct statvfs *disk, uint64_t most, unsigned share)
{
    uint64_t part = disk->f_blocks / share * disk->f_frsize;

    return part < most ? part : most;
}

static uint64_t left_of(const struct statvfs *disk)
{
    return disk->f_bavail * disk->f_frsize;
}

static bool has_inodes(const struct statvfs *disk)
{
    return disk->f_files == 0 || disk->f_favail >= INODES_LOW; /* some have no fixed number */
}

int disk_room_for_blobs(struct store *s, struct err *e)
{
    struct statvfs disk;
    uint64_t reserve = s->reserve;

    if (fstatvfs(s->dir, &disk) < 0) {
        err_sys(e, "look at the disk");
        return disk_blame(e);
    }
    if (reserve == 0)
        reserve = part_of(&disk, RESERVE, RESERVE_PART);
    if (disk.f_flag & ST_RDONLY)
        return set_full(e, EROFS);
    return left_of(&disk) < reserve || !has_inodes(&disk) ? set_full(e, ENOSPC) : 0;
}

bool store_is_low(struct store *s)
{
    struct err ignored;

    return disk_room_for_blobs(s, &ignored) < 0;
}

static bool has_failed(struct store *s, struct err *e)
{
    bool full;

    pthread_mutex_lock(&s->disk_mutex);
    full = s->disk_failed.kind != ERR_NONE;
    if (full)
        *e = s->disk_failed;
    else if (s->loop && !s->has_spare) /* a record could find no room at its end */
        full = set_full(e, ENOSPC) < 0;
    pthread_mutex_unlock(&s->disk_mutex);
    return full;
}

static bool has_no_room(struct store *s, struct err *e)
{
    struct statvfs disk;

    if (fstatvfs(s->dir, &disk) < 0)
        return false;
    if (disk.f_flag & ST_RDONLY)
        return set_full(e, EROFS) < 0;
    if (left_of(&disk) < part_of(&disk, SPARE_SIZE, SPARE_SHARE) || !has_inodes(&disk))
        return set_full(e, ENOSPC) < 0;
    s->room_us = time_mono_us();
    return false;
}

static bool is_full(struct store *s, struct err *e)
{
    return has_failed(s, e) || has_no_room(s, e);
}

/* An execution asks when it comes and when it begins. What others write in a millisecond finds room
 * in the spare file. */
bool store_is_full(struct store *s, struct err *e)
{
    bool was_seen = time_mono_us() - s->room_us < ROOM_US;

    return has_failed(s, e) || (!was_seen && has_no_room(s, e)) ||
           (s->remote && s->remote->is_away(s, e)) || !store_lease_holds(s, e);
}

/* Only a database that can be looked after is away: blobs that are have a state of their own. */
void disk_failed(struct store *s, const struct err *e)
{
    bool away = e->kind == ERR_AWAY && s->db && s->db->ops->look;

    if (e->kind != ERR_FULL && !away)
        return;
    pthread_mutex_lock(&s->disk_mutex);
    s->disk_failed = *e;
    pthread_mutex_unlock(&s->disk_mutex);
}

/* --- on the store's thread --- */

static void set_spare(struct store *s, bool has)
{
    pthread_mutex_lock(&s->disk_mutex);
    s->has_spare = has;
    pthread_mutex_unlock(&s->disk_mutex);
}

/* Room for it, and as much again: else it would be given up at once. */
static void make_spare(struct store *s)
{
    AUTO_CLOSE int fd = -1;
    struct statvfs disk;
    uint64_t size;

    if (fstatvfs(s->dir, &disk) < 0)
        return;
    size = part_of(&disk, SPARE_SIZE, SPARE_SHARE);
    if (left_of(&disk) < 3 * size || !has_inodes(&disk))
        return;
    fd = openat(s->dir, SPARE_NAME, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && posix_fallocate(fd, 0, (off_t)size) == 0)
        set_spare(s, true);
    else if (fd >= 0)
        (void)!unlinkat(s->dir, SPARE_NAME, 0);
}

void disk_look(struct store *s)
{
    struct err why;

    s->db->checks_blobs = disk_room_for_blobs(s, &why) < 0;
    if (!s->has_spare || !is_full(s, &why))
        return;
    (void)!unlinkat(s->dir, SPARE_NAME, 0);
    set_spare(s, false);
}

/* A file and a row, on the disk. */
static int try_disk(struct store *s, struct err *e)
{
    static const char zeros[TRIAL_SIZE];
    AUTO_CLOSE int fd = openat(s->blobs, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0 && errno == EOPNOTSUPP) {
        fd = openat(s->dir, "retort.trial", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        (void)!unlinkat(s->dir, "retort.trial", 0);
    }
    if (fd < 0)
        return err_sys(e, "open");
    if (fd_write_all(fd, (struct str){zeros, sizeof(zeros)}, e) < 0)
        return -1;
    if (fdatasync(fd) < 0)
        return err_sys(e, "sync");
    return s->db->ops->try_write(s->db, e) < 0 ? -1 : s->db->ops->sync(s->db, e);
}

bool disk_is_well(struct store *s)
{
    bool failed;

    pthread_mutex_lock(&s->disk_mutex);
    failed = s->disk_failed.kind != ERR_NONE;
    pthread_mutex_unlock(&s->disk_mutex);
    return !failed && s->has_spare;
}

void disk_try_again(struct store *s)
{
    struct err e = {0};

    disk_look(s);
    if (try_disk(s, &e) < 0) {
        (void)!disk_blame(&e);
        return disk_failed(s, &e);
    }
    pthread_mutex_lock(&s->disk_mutex);
    s->disk_failed = (struct err){0};
    pthread_mutex_unlock(&s->disk_mutex);
    if (!s->has_spare)
        make_spare(s);
}
