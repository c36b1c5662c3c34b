/*
 * wire: every message between our own processes, and the one way to send them.
 *
 * Touches: the sockets it is given. Never touches: clients, files, policy. Both
 * ends use it, so it is also linked into the guest's extension module.
 *
 * A packet is a struct wire_head and a body of at most WIRE_BODY_MAX bytes on a
 * SOCK_SEQPACKET socket. A longer body travels as several packets of one type
 * and id, all but the last marked WIRE_MORE; struct wire_in puts it together
 * under a ceiling. A body is a row of fields: tag, length, bytes. Numbers are
 * little-endian. A reader never trusts a length; what does not fit is an error.
 *
 * Who says what to whom is the list of enum wire_type below.
 */
#pragma once

#include "base/base.h"

#define WIRE_BODY_MAX (48 * KiB) /* with the head well below the default socket buffer */
#define WIRE_FDS_MAX  8
#define WIRE_MORE     1u
#define WIRE_FILE     2u /* the body is in the file that comes along; server to kernel only */

enum wire_type {
    /* server -> kernel */
    MSG_CELL = 0x10, /* CODE, CELL_NO, ENV...: run this */
    MSG_ACK = 0x11,  /* what you sent last is in the record, go on */
    MSG_WARM = 0x12, /* before the first cell: take every page that one may want */

    /* kernel -> server */
    MSG_IDLE = 0x20,    /* the interpreter is up */
    MSG_SYNC = 0x21,    /* read my pipes empty, then MSG_ACK */
    MSG_DISPLAY = 0x22, /* MIME+DATA pairs, METADATA?, DISPLAY_ID?, FLAGS; answered by MSG_ACK */
    MSG_CLEAR = 0x23,   /* FLAGS (1: wait); answered by MSG_ACK */
    MSG_RESULT = 0x24,  /* MIME+DATA pairs, METADATA?: value of the last expression */
    MSG_ERROR = 0x25,   /* NAME, TEXT, TRACE, ERRNO?, then FRAME_* groups */
    MSG_DONE = 0x26,    /* STATUS: 0 ok, 1 raised, 2 interrupted; NAME?: modules it imported */

    /* server -> init */
    MSG_KERNEL = 0x31, /* fds: socket, stdout, stderr: start an interpreter */
    MSG_SIGNAL = 0x32, /* head.id: 0 the kernel, else a command; NUMBER: signal it */
    MSG_COMMAND =
        0x33,         /* id in head; ARG..., ENV...; fds: stdin, stdout, stderr: start a program */
    MSG_WATCH = 0x34, /* CPU_US, MEMORY: tell when exceeded; 0 and 0: stop watching */

    /* init -> server */
    MSG_READY = 0x40,        /* fds: workspace, tmp, shm, proxy?: the box is closed and verified */
    MSG_FAILED = 0x41,       /* TEXT: it is not, and this process is gone */
    MSG_KERNEL_EXIT = 0x42,  /* STATUS as of wait(2) */
    MSG_COMMAND_EXIT = 0x43, /* id in head; STATUS as of wait(2) */
    MSG_SIGNALLED = 0x45,    /* what MSG_SIGNAL with id 0 asked for has been done */
    MSG_TRIP = 0x44,         /* NUMBER: an enum wire_trip */

    /* server -> warden */
    MSG_POOL_START = 0x50, /* head.id: zygote id; NUMBER: of an environment the warden was told of;
                              NAME?: modules to import, if they can be had */
    MSG_POOL_STOP = 0x51,  /* head.id: zygote id: make no more, end when the last box is gone */
    MSG_SPAWN = 0x52,      /* head.id: box id; ZYGOTE; BLOB: box_plan; fd: init's socket */
    MSG_USAGE = 0x53,      /* head.id: box id: what has it used? */
    MSG_KILL = 0x54,       /* head.id: box id: end it now */
    MSG_PING = 0x55,       /* head.id: zygote id: is it there? The warden asks the zygote, too */

    /* warden -> server */
    MSG_POOL_UP = 0x60,    /* head.id: zygote id; NAME?: of these modules what it has */
    MSG_POOL_DOWN = 0x61,  /* head.id: zygote id; TEXT: why; STATUS 1: the Python itself refuses */
    MSG_SPAWNED = 0x62,    /* head.id: box id; UID its files have here; FLAGS 1: in a cgroup, and
                              fds: its meters, as cgroup_meters() has them */
    MSG_SPAWN_FAIL = 0x63, /* head.id: box id; TEXT */
    MSG_USED = 0x64,       /* head.id: box id; OOM_KILLS, PID_HITS */
    MSG_GONE = 0x65,       /* head.id: box id: no process of it is left */
    MSG_PONG = 0x67,       /* head.id: zygote id: it is, and so is the warden */
    MSG_WARDEN_UP = 0x66,  /* once: what it acts on is open, what it does not need is dropped */

    /* warden -> zygote, and back */
    MSG_FORK = 0x70,      /* head.id: box id; BLOB: box_plan, UID_MAP; fds: init's socket, cgroup */
    MSG_FORKED = 0x71,    /* head.id; fd: pidfd */
    MSG_FORK_FAIL = 0x72, /* head.id; TEXT */
    MSG_ZYGOTE_UP = 0x73, /* NAME?: as in MSG_POOL_UP: warmed up; now wants MSG_FILTERS */
    MSG_ZYGOTE_FAIL = 0x74, /* TEXT */
    MSG_ZYGOTE_PING = 0x76, /* answered by */
    MSG_ZYGOTE_PONG = 0x77,
    MSG_FILTERS = 0x75, /* BLOB, BLOB: seccomp programs for the box and for its user */
};

enum wire_tag {
    TAG_CODE = 1,
    TAG_FLAGS,
    TAG_STATUS,
    TAG_NUMBER,
    TAG_TEXT,
    TAG_NAME,
    TAG_TRACE,
    TAG_ERRNO,
    TAG_MIME,
    TAG_DATA,
    TAG_DISPLAY_ID,
    TAG_FRAME_FILE, /* starts a frame; "<cell N>" or a path under the workspace */
    TAG_FRAME_LINE,
    TAG_FRAME_NAME,
    TAG_FRAME_TEXT,
    TAG_CELL_NO,
    TAG_ARG,
    TAG_ENV,
    TAG_CPU_US,
    TAG_MEMORY,
    TAG_OOM_KILLS,
    TAG_PID_HITS,
    TAG_UID,
    TAG_UID_MAP, /* text for uid_map and gid_map alike */
    TAG_BLOB,    /* a struct of ours between processes built from the same tree */
    TAG_ZYGOTE,
    TAG_METADATA, /* a JSON object: how to show a bundle, in IPython's own words */
};

enum wire_trip { TRIP_CPU = 1, TRIP_MEMORY, TRIP_PIDS };

struct wire_head {
    uint16_t type;
    uint16_t flags;
    uint32_t len; /* of this packet's body */
    uint64_t id;
};

/* --- writing a body --- */

void wire_put(struct buf *b, uint16_t tag,
              struct str data); /* body buffers of ours; aborts past the ceiling */
void wire_put_num(struct buf *b, uint16_t tag, uint64_t value);

/* --- reading a body --- */

struct wire_field {
    uint16_t tag;
    struct str data; /* borrowed from the body */
};

/* 1 and *ret, 0 at the end, -1 when the rest is not a field. Advances *body. */
int wire_next(struct str *body, struct wire_field *ret) MUST_CHECK;
/* A field of exactly eight bytes as a number; -1 when it is not that long. */
int wire_num(struct wire_field f, uint64_t *ret) MUST_CHECK;
/* The first field with this tag, as bytes or number; false when there is none. */
bool wire_find(struct str body, uint16_t tag, struct str *ret);
bool wire_find_num(struct str body, uint16_t tag, uint64_t *ret);

/* Modules of Python as they travel: "json,numpy.linalg". Names and list have an end. */
#define WIRE_MODULE_MAX  96
#define WIRE_MODULES_MAX (4 * KiB)
bool wire_are_modules(struct str list);

/* --- packets --- */

/* Sends one message, in as many packets as it takes. fds go with the first packet.
 * Blocks on a blocking socket. 0 or -1 with errno (EPIPE: the peer is gone). */
int wire_send(int fd, uint16_t type, uint64_t id, struct str body, const int *fds,
              size_t nfds) MUST_CHECK;

/* The same in one packet whatever its length, so that it never waits for a reader: a long body goes
 * as a file. For a peer that looks for WIRE_FILE and calls wire_take_file(). */
int wire_send_whole(int fd, uint16_t type, uint64_t id, struct str body) MUST_CHECK;
/* Appends the bytes of the file to ret. -1 when they cannot be read or are too many. */
int wire_take_file(int file, struct buf *ret) MUST_CHECK;

/* Receives one packet: 1 and head, body bytes in ret (size WIRE_BODY_MAX); 0 on EOF;
 * -1 with errno (EAGAIN on a non-blocking socket, EBADMSG for a malformed packet).
 * With ret_fds NULL, fds that come along are discarded by the kernel. */
int wire_recv(int fd, struct wire_head *ret_head, char *ret, int *ret_fds, size_t max_fds,
              size_t *ret_nfds) MUST_CHECK;

/* Puts the packets of one message together. */
struct wire_in {
    struct wire_head head;
    struct buf body;
    bool open; /* a message has begun and not ended */
};

void wire_in_init(struct wire_in *in, size_t max);
void wire_in_done(struct wire_in *in);
/* 1: in->head and in->body are a whole message; 0: more to come; -1: does not continue what was
 * begun, or longer than max. After a whole message the next call starts afresh. */
int wire_in_add(struct wire_in *in, struct wire_head head, struct str part) MUST_CHECK;

/* Socket pair of the kind all this runs on, both ends close-on-exec. */
int wire_pair(int ret[2], struct err *e) MUST_CHECK;
