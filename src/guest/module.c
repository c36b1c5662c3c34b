/* The extension module `_retort`, on the stable ABI so that one file serves every Python 3. */
#define Py_LIMITED_API 0x03080000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "guest/guest.h"

#include "sandbox/box.h"
#include "wire/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGE_MAX (20 * MiB) /* a cell of 16 MiB and room to spare */

static char packet[WIRE_BODY_MAX];
static struct wire_in inbox = {.body = {.max = MESSAGE_MAX}};

/* 1: a whole message in inbox; 0: the server is gone; -1: a Python exception. */
static int receive(void)
{
    for (;;) {
        struct wire_head head;
        AUTO_CLOSE int file = -1;
        size_t nfds;
        int rc;
        Py_BEGIN_ALLOW_THREADS
        rc = wire_recv(KERNEL_FD, &head, packet, &file, 1, &nfds);
        Py_END_ALLOW_THREADS
        if (PyErr_CheckSignals() < 0)
            return -1;
        if (rc <= 0)
            return 0;
        if (head.flags & WIRE_FILE) {
            inbox.head = head;
            inbox.body.n = 0;
            return wire_take_file(file, &inbox.body) < 0 ? 0 : 1;
        }
        rc = wire_in_add(&inbox, head, (struct str){packet, head.len});
        if (rc < 0)
            return 0;
        if (rc == 1)
            return 1;
    }
}

#define REST_MS   3000
#define SPREAD_MS 4000

/* A thousand cells that end together must not be followed by a thousand housekeepings at once, so
 * each waits for a time of its own. Fresh randomness: forks of one zygote have the rest in common.
 */
static int rest_ms(void)
{
    uint16_t more = 0;

    (void)!getrandom(&more, sizeof(more), GRND_NONBLOCK);
    return REST_MS + more % SPREAD_MS;
}

static bool has_worked; /* before the first cell nothing can have come back */
static bool is_to_be_warm;

/* Waiting is when there is time for housekeeping. */
static void wait_for_message(void)
{
    struct pollfd p = {KERNEL_FD, POLLIN, 0};
    int rc;

    if (!has_worked) /* afterwards it is too late to be early */
        pages_take(is_to_be_warm, KERNEL_FD);
    do {
        Py_BEGIN_ALLOW_THREADS
        rc = poll(&p, 1, has_worked ? rest_ms() : -1);
        Py_END_ALLOW_THREADS
        if (rc == 0)
            pages_rest(KERNEL_FD);
    } while (rc == 0 || (rc < 0 && errno == EINTR));
}

static PyObject *py_fileno(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    return PyLong_FromLong(KERNEL_FD);
}

static PyObject *py_recv(PyObject *self, PyObject *none)
{
    int rc;

    (void)self;
    (void)none;
    do {
        wait_for_message();
        rc = receive();
        is_to_be_warm = rc == 1 && inbox.head.type == MSG_WARM;
    } while (is_to_be_warm);
    has_worked = true;
    if (rc < 0)
        return NULL;
    if (rc == 0)
        Py_RETURN_NONE;
    return Py_BuildValue("(HKy#)", inbox.head.type, (unsigned long long)inbox.head.id,
                         inbox.body.p ? inbox.body.p : "", (Py_ssize_t)inbox.body.n);
}

/* One (tag, bytes or int) pair into body; -1 with an exception set. */
static int put_field(struct buf *body, PyObject *pair)
{
    PyObject *tag =
        PyTuple_Check(pair) && PyTuple_Size(pair) == 2 ? PyTuple_GetItem(pair, 0) : NULL;
    PyObject *value = tag ? PyTuple_GetItem(pair, 1) : NULL;
    unsigned long number = tag ? PyLong_AsUnsignedLong(tag) : 0;
    char *p;
    Py_ssize_t n;

    if (!value) {
        PyErr_SetString(PyExc_TypeError, "a field is a pair of tag and value");
        return -1;
    }
    if (PyErr_Occurred())
        return -1;
    if (PyLong_Check(value)) {
        unsigned long long v = PyLong_AsUnsignedLongLong(value);
        if (PyErr_Occurred())
            return -1;
        if (buf_room(body, 64))
            wire_put_num(body, (uint16_t)number, v);
        return 0;
    }
    if (PyBytes_AsStringAndSize(value, &p, &n) < 0)
        return -1;
    if (!buf_room(body, (size_t)n + 64)) {
        PyErr_SetString(PyExc_ValueError, "message too long");
        return -1;
    }
    wire_put(body, (uint16_t)number, (struct str){p, (size_t)n});
    return 0;
}

static int send_message(PyObject *args)
{
    AUTO(buf_done) struct buf body = BUF(MESSAGE_MAX);
    unsigned int type;
    unsigned long long id;
    PyObject *fields;
    int rc = 0;

    if (!PyArg_ParseTuple(args, "IKO", &type, &id, &fields))
        return -1;
    if (!PyList_Check(fields)) {
        PyErr_SetString(PyExc_TypeError, "fields must be a list");
        rc = -1;
    }
    for (Py_ssize_t i = 0; rc == 0 && i < PyList_Size(fields); i++)
        rc = put_field(&body, PyList_GetItem(fields, i));
    if (rc == 0) {
        Py_BEGIN_ALLOW_THREADS
        rc = wire_send(KERNEL_FD, (uint16_t)type, id, buf_str(&body), NULL, 0);
        Py_END_ALLOW_THREADS
        if (rc < 0)
            PyErr_SetFromErrno(PyExc_OSError);
    }
    return rc;
}

static PyObject *py_send(PyObject *self, PyObject *args)
{
    (void)self;
    if (send_message(args) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* An interrupt while waiting must not leave the answer behind for the next caller to find, so
 * signals are looked at only when it has come. */
static PyObject *py_call(PyObject *self, PyObject *args)
{
    struct wire_head head;
    int rc;

    (void)self;
    if (send_message(args) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    rc = wire_recv(KERNEL_FD, &head, packet, NULL, 0, NULL);
    Py_END_ALLOW_THREADS
    if (rc <= 0 || head.type != MSG_ACK)
        _exit(1); /* the server is gone, or has given this kernel up */
    if (PyErr_CheckSignals() < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_fields(PyObject *self, PyObject *args)
{
    struct str body;
    struct wire_field f;
    Py_ssize_t n;
    PyObject *list;
    int rc = 0;

    (void)self;
    if (!PyArg_ParseTuple(args, "y#", &body.p, &n))
        return NULL;
    body.n = (size_t)n;
    list = PyList_New(0);
    while (list && (rc = wire_next(&body, &f)) == 1) {
        PyObject *pair = Py_BuildValue("(Hy#)", f.tag, f.data.p, (Py_ssize_t)f.data.n);
        if (!pair || PyList_Append(list, pair) < 0)
            rc = -1;
        Py_XDECREF(pair);
        if (rc < 0)
            break;
    }
    if (list && rc < 0) {
        Py_DECREF(list);
        list = NULL;
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "not a row of fields");
    }
    return list;
}

static PyObject *py_unread(PyObject *self, PyObject *args)
{
    int fd, n = 0;

    (void)self;
    if (!PyArg_ParseTuple(args, "i", &fd))
        return NULL;
    if (ioctl(fd, FIONREAD, &n) < 0)
        n = 0; /* the code has put something else there */
    return PyLong_FromLong(n);
}

static _Noreturn void fail(int fd, struct str text)
{
    AUTO(buf_done) struct buf body = BUF(4 * KiB);

    wire_put(&body, TAG_TEXT, (struct str){text.p, text.n < 2 * KiB ? text.n : 2 * KiB});
    _exit(wire_send(fd, MSG_ZYGOTE_FAIL, 0, buf_str(&body), NULL, 0) < 0 ? 2 : 1);
}

static PyObject *py_fail(PyObject *self, PyObject *args)
{
    const char *text;
    Py_ssize_t n;
    int fd;

    (void)self;
    if (!PyArg_ParseTuple(args, "is#", &fd, &text, &n))
        return NULL;
    fail(fd, (struct str){text, (size_t)n});
}

static PyObject *py_plug(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    heap_plug();
    Py_RETURN_NONE;
}

static int lesson = -1; /* in the child that runs the typical cells: where to write them down */

static PyObject *py_teach(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    pages_teach(lesson);
    Py_RETURN_NONE;
}

/* True in the child, which goes back into Python to run the typical cells and then teach(). */
static bool take_lesson(void)
{
    int p[2];
    pid_t pid;

    if (pipe2(p, O_CLOEXEC) < 0)
        return false;
    pid = raw_fork();
    if (pid == 0) {
        close(p[0]);
        lesson = p[1];
        return true;
    }
    close(p[1]);
    pages_learn(p[0]);
    close(p[0]);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return false;
}

/* What a fork draws from libc, which on newer systems keeps a state of its own in memory: wiped by
 * fork(), as long as the image has left it alone. */
static bool fork_draws(uint8_t ret[16])
{
    ssize_t got = 0;
    int p[2];
    pid_t pid;

    if (pipe2(p, O_CLOEXEC) < 0)
        return false;
    pid = raw_fork();
    if (pid == 0)
        _exit(getentropy(ret, 16) < 0 || write(p[1], ret, 16) != 16);
    close(p[1]);
    if (pid > 0) {
        got = read(p[0], ret, 16);
        waitpid(pid, NULL, 0);
    }
    close(p[0]);
    return got == 16;
}

static bool forks_differ(void)
{
    uint8_t a[16], b[16];

    return fork_draws(a) && fork_draws(b) && memcmp(a, b, sizeof(a)) != 0;
}

static PyObject *py_zygote_loop(PyObject *self, PyObject *args)
{
    struct err e;
    struct str modules;
    Py_ssize_t n;
    int fd, frozen = 0;

    (void)self;
    if (!PyArg_ParseTuple(args, "is#", &fd, &modules.p, &n))
        return NULL;
    modules.n = (size_t)n;
    if (root_seal(&e) < 0) {
        PyErr_SetString(PyExc_OSError, e.text);
        return NULL;
    }
    PyOS_BeforeFork();
    frozen = heap_freeze(&e);
    if (frozen < 0) /* slower forks, nothing worse */
        dprintf(2, "memory image not frozen: %s\n", e.text);
    if (!forks_differ())
        fail(fd, STR("two forks of this interpreter draw the same random numbers, so no session is "
                     "safe from another: please report this system"));
    if (frozen < 0 || !take_lesson())
        zygote_run(fd, modules);
    PyOS_AfterFork_Child();
    return PyBool_FromLong(lesson < 0);
}

static PyMethodDef methods[] = {
    {"recv",        py_recv,        METH_NOARGS,  "recv() -> (type, id, body) or None"            },
    {"send",        py_send,        METH_VARARGS, "send(type, id, fields)"                        },
    {"call",        py_call,        METH_VARARGS, "call(type, id, fields): send and wait for ACK" },
    {"fields",      py_fields,      METH_VARARGS, "fields(body) -> [(tag, bytes)]"                },
    {"fileno",      py_fileno,      METH_NOARGS,  "fileno() -> the socket that recv() reads"      },
    {"unread",      py_unread,      METH_VARARGS, "unread(fd) -> bytes waiting in the pipe"       },
    {"fail",        py_fail,        METH_VARARGS, "fail(fd, text): the zygote cannot start"       },
    {"plug",        py_plug,        METH_NOARGS,  "plug(): fill the holes of the heap"            },
    {"zygote_loop", py_zygote_loop, METH_VARARGS, "zygote_loop(fd, modules): True in a new kernel"},
    {"teach",       py_teach,       METH_NOARGS,  "teach(): tells it which pages were used"       },
    {NULL,          NULL,           0,            NULL                                            },
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_retort", .m_size = -1,
                                    .m_methods = methods};

PyMODINIT_FUNC PyInit__retort(void); /* found by name: no header declares it */

PyMODINIT_FUNC PyInit__retort(void)
{
    setvbuf(stdout, NULL, _IONBF, 0); /* what C code prints must not wait for the next cell */
    return PyModule_Create(&module);
}
