/*
 * prisme: Prisme.ai's Code Interpreter and the Python half of its Functions service. A script and
 * the URLs of its files go in; a result, the printed lines and an error come out. Nothing is kept
 * from one script to the next.
 *
 * Touches: requests through http, calls of the mcp room, the service. Never touches:
 * sockets, the store, rules.
 *
 * prisme_door and these functions are a row of cli/doors.c. script_exec.c runs a script, value.c
 * makes the answer, trusted_sources.c knows the callers that need no key. prisme_think() adds a
 * tool that needs a model.
 */
#pragma once

#include "doors/http/http.h"

struct prisme;
struct tool_set;
struct tool;

/* What scripts may import unless the operator says otherwise. openpyxl is there because Excel files
 * are promised, and pandas reads them by it. */
#define PRISME_BUILTINS                                                                            \
    "json,csv,xml,html,email,re,string,textwrap,unicodedata,difflib,math,decimal,fractions,"       \
    "random,statistics,datetime,time,calendar,collections,itertools,functools,operator,array,"     \
    "heapq,bisect,queue,copy,enum,typing,dataclasses,abc,types,io,pathlib,tempfile,glob,fnmatch,"  \
    "base64,hashlib,hmac,binascii,struct,secrets,zlib,gzip,bz2,lzma,zipfile,tarfile,urllib,http,"  \
    "logging,warnings,traceback,pprint,uuid,contextlib,weakref,timeit,atexit"
#define PRISME_PACKAGES "numpy,pandas,openpyxl,tabulate,dateparser,urllib3,requests,pptx,docx"

struct prisme_config {
    struct loop *loop;         /* borrowed, as are the rest */
    const char *pool;          /* NULL: the first */
    const char *builtins;      /* comma-separated; NULL: PRISME_BUILTINS */
    const char *packages;      /* NULL: PRISME_PACKAGES */
    const char *packages_more; /* with or without versions; or NULL */
    const char *sources;       /* callers that need no key; NULL: none */
    struct str source_key;     /* signs tokens of such callers; empty: no tokens */
    bool certificates;         /* TLS asks clients for certificates */
    uint64_t timeout_ms;
    uint64_t parallel; /* scripts at a time */
    bool user_first;   /* execute_python is a stub until the user asks for it */
};

/* NULL and *e when a setting cannot be read. */
struct prisme *prisme_new(const struct prisme_config *config, struct err *e);
/* What waits for an approver is given up; its approval stays. */
void prisme_drain(void *room);
/* Ends what runs for nobody. Call before the service is freed. */
void prisme_stop(void *room);
void prisme_free(void *room);                       /* after the last request and call */
const struct tool_set *prisme_tool_set(void *room); /* lives as long as the room */
extern const struct door prisme_door;
/* Beside execute_python: one that needs a model, ours or the client's. Before the tool set
 * is shown; ctx is that of the set. Not where a user has to ask for tools first: it would be a way
 * around. */
void prisme_think(struct prisme *p, const struct tool *tool, void *ctx, bool has_model);
/* Variables that make the cells of a session scripts, with the imports allowed here. */
#define PRISME_ENV 2
void prisme_env(const struct prisme *p, struct env_var ret[PRISME_ENV]); /* outlived by p */
