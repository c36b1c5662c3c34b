/* MIME types: of a file by its name, the suffix for a type, and whether a type is text. */
#include "engine/engine.h"

#include <strings.h>

/* The first of a type is the suffix that it gets. */
static const char *const mimes[][2] = {
    {".png",     "image/png"                                                                },
    {".jpg",     "image/jpeg"                                                               },
    {".jpeg",    "image/jpeg"                                                               },
    {".gif",     "image/gif"                                                                },
    {".svg",     "image/svg+xml"                                                            },
    {".webp",    "image/webp"                                                               },
    {".pdf",     "application/pdf"                                                          },
    {".csv",     "text/csv"                                                                 },
    {".tsv",     "text/tab-separated-values"                                                },
    {".txt",     "text/plain"                                                               },
    {".log",     "text/plain"                                                               },
    {".md",      "text/markdown"                                                            },
    {".py",      "text/x-python"                                                            },
    {".html",    "text/html"                                                                },
    {".htm",     "text/html"                                                                },
    {".json",    "application/json"                                                         },
    {".jsonl",   "application/x-ndjson"                                                     },
    {".xml",     "application/xml"                                                          },
    {".yaml",    "application/yaml"                                                         },
    {".yml",     "application/yaml"                                                         },
    {".zip",     "application/zip"                                                          },
    {".gz",      "application/gzip"                                                         },
    {".tar",     "application/x-tar"                                                        },
    {".parquet", "application/vnd.apache.parquet"                                           },
    {".xls",     "application/vnd.ms-excel"                                                 },
    {".xlsx",    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"        },
    {".docx",    "application/vnd.openxmlformats-officedocument.wordprocessingml.document"  },
    {".pptx",    "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
    {".mp3",     "audio/mpeg"                                                               },
    {".wav",     "audio/x-wav"                                                              },
    {".mp4",     "video/mp4"                                                                },
    {".ipynb",   "application/x-ipynb+json"                                                 },
    {".sqlite",  "application/vnd.sqlite3"                                                  },
    {".db",      "application/vnd.sqlite3"                                                  },
};

const char *mime_of(struct str path)
{
    for (size_t i = 0; i < COUNT(mimes); i++) {
        size_t n = strlen(mimes[i][0]);
        if (path.n > n && strncasecmp(path.p + path.n - n, mimes[i][0], n) == 0)
            return mimes[i][1];
    }
    return "application/octet-stream";
}

const char *mime_suffix(struct str mime)
{
    for (size_t i = 0; i < COUNT(mimes); i++)
        if (str_is(mime, mimes[i][1]))
            return mimes[i][0];
    return "";
}

bool mime_is_text(struct str mime)
{
    static const char *const kinds[] = {"json", "xml",        "javascript", "x-javascript",
                                        "yaml", "ecmascript", "x-yaml",     "x-ndjson",
                                        "toml", "sql",        "x-latex",    "x-tex"};
    static const char *const suffixes[] = {"+json", "+xml", "+yaml", "+json-seq"};
    struct str kind = {NULL, 0};

    if (!str_next(&mime, ';', &kind)) /* without parameters */
        return false;
    if (kind.n > 5 && strncasecmp(kind.p, "text/", 5) == 0)
        return true;
    for (size_t i = 0; i < COUNT(suffixes); i++) {
        size_t n = strlen(suffixes[i]);
        if (kind.n > n && strncasecmp(kind.p + kind.n - n, suffixes[i], n) == 0)
            return true;
    }
    if (kind.n < 12 || strncasecmp(kind.p, "application/", 12) != 0)
        return false;
    kind = str_from(kind, 12);
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (kind.n == strlen(kinds[i]) && strncasecmp(kind.p, kinds[i], kind.n) == 0)
            return true;
    return false;
}
