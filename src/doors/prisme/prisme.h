/*
 * prisme: Prisme.ai's Code Interpreter and the Python half of its Functions service. A
 * script and the URLs of its files go in; a value, what was printed, and what went wrong
 * come out. Nothing is kept from one script to the next.
 *
 * Touches: requests through http, calls of the mcp room, the service. Never touches:
 * sockets, the store, rules.
 *
 * prisme_new(), then prisme_door_init() and http_add() for plain HTTP; prisme_face() is
 * what an mcp room of its own shows. script.c has a script run, value.c tells what came
 * of it, trust.c who may come in without a key. prisme_think() adds a tool that needs a
 * model to that face.
 */
#pragma once

#include "doors/http/http.h"

struct prisme;
struct face;
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
    const char *sources;       /* who needs no key; NULL: nobody */
    struct str source_key;     /* signs their tokens; empty: there are none */
    bool certificates;         /* clients are asked for theirs */
    uint64_t timeout_ms;
    uint64_t parallel; /* scripts at a time */
    bool user_first;   /* execute_python is there once a user has asked for it */
};

/* NULL and *e when a setting cannot be read. */
struct prisme *prisme_new(const struct prisme_config *config, struct err *e);
void prisme_free(struct prisme *p); /* after the last request and call; NULL is none */
void prisme_door_init(struct door *ret, struct prisme *p);
const struct face *prisme_face(struct prisme *p); /* outlived by p */
/* Beside execute_python: one that needs a model, ours or the client's. Before the face is shown;
 * ctx is the face's. Not where a user has to ask for tools first: it would be a way around. */
void prisme_think(struct prisme *p, const struct tool *tool, void *ctx, bool has_model);
/* What makes a session's cells scripts as they are here, with what they may import. */
#define PRISME_ENV 2
void prisme_env(const struct prisme *p, struct env_var ret[PRISME_ENV]); /* outlived by p */
/* A door at which the same callers are known: that of its mcp room. */
void prisme_door_trust(struct door *d, struct prisme *p);
