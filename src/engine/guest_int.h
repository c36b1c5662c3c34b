/* One guest: guest.c has its life and what it is told, guest_messages.c what it says. */
#pragma once

#include "engine/engine_int.h"

struct kernel_link {
    int sock; /* owned; -1: no kernel */
    struct watch *watch;
    struct wire_in in;
    size_t held; /* bytes of it that the engine has counted */
    struct stream *out, *err;
    bool ending; /* killed, or its end of the socket is closed: init's word on it follows */
};

struct guest {
    struct guest *next; /* of the engine's list */
    uint64_t id, zygote;
    struct pool *pool; /* borrowed: outlives us */
    enum guest_state state;
    const struct guest_owner *owner;
    void *arg;
    int ctl; /* owned */
    struct watch *from_ctl;
    struct kernel_link kernel;
    int space, tmp, shm; /* owned: dirfds */
    int listener;        /* owned; -1: none, or taken */
    int meters[METERS];  /* owned; -1: nobody counts that */
    uid_t uid;
    unsigned signals;   /* for the kernel, on their way to init */
    bool spawned;       /* the warden has told uid and in_cgroup */
    bool in_cgroup;     /* else init watches memory */
    uint64_t running;   /* id of the execution the kernel is at */
    unsigned tries;     /* left for an interpreter that ends before it is up */
    struct timer *boot; /* owned: until an interpreter is up */
    char why[256];
};

/* --- guest.c --- */

void guest_go(struct guest *g, enum guest_state to);
/* Makes the server's ends, and has init start an interpreter on the others. */
int guest_start_kernel(struct guest *g) MUST_CHECK;
void guest_unlink_kernel(struct guest *g); /* lets go of the server's ends */
/* Sets or clears a bound on init's answer, as one is due or not. */
void guest_await_init(struct guest *g);

/* --- guest_messages.c: for watches, which have the guest as their arg --- */

void guest_on_kernel(void *arg);
void guest_on_init(void *arg);
