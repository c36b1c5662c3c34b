/*
 * console: the page that a person opens in a browser, at /.
 *
 * Touches: requests through http, the bytes of the page, which are part of the program.
 * Never touches: the service. The page is a client of /v1 like any other, with the key
 * that its user types in.
 *
 * console_door is a row of cli/doors.c. page.py builds the page of web/ when node is
 * there, compresses it and makes the table console_files. Without node the table is
 * empty, and a sentence stands in the place of the page.
 */
#pragma once

#include "doors/http/http.h"

extern const struct door console_door;

struct console_file {
    const char *path; /* "index.html", "console/main-D3adB33f.js"; NULL: the end of the table */
    const char *mime;
    const char *hash; /* of its bytes, in hex: the ETag */
    struct str gzip;
    size_t size; /* when it is unpacked */
};
extern const struct console_file console_files[];
