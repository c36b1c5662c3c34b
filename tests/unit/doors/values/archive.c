/* Archives, as the programs read them that people have. */
#include "doors/values/archive.h"
#include "scratch.h"

#include <sys/wait.h>
#include <zlib.h>

#define LONG_PART "0123456789012345678901234567890123456789012345678901234567890123456789"

static const struct {
    struct str path, bytes;
} files[] = {
    {STR("plain.txt"),                                                   STR("hello\n")      },
    {STR("empty"),                                                       STR("")             },
    {STR("a/b/c/deep.bin"),                                              STR("\0\1\2\xff")   },
    {STR("caf\xc3\xa9/\xe6\x97\xa5\xe6\x9c\xac.txt"),                    STR("utf-8")        },
    {STR("not\xff\xfeutf8"),                                             STR("raw")          },
    {STR("two\nlines and \ttab"),                                        STR("newline")      },
    {STR(LONG_PART "/" LONG_PART),                                       STR("ustar prefix") },
    {STR("p/" LONG_PART "/" LONG_PART "/" LONG_PART "/" LONG_PART "/x"), STR("pax, long")    },
    {STR(LONG_PART LONG_PART LONG_PART),                                 STR("pax, one part")},
    {STR(LONG_PART LONG_PART "\xff" LONG_PART),                          STR("pax, binary")  },
    {STR("ends in \\backslash\\"),                                       STR("x")            },
};

/* A backslash separates folders on some systems, so none is in the name of an entry. */
static struct str entry_name(struct str path)
{
    return memchr(path.p, '\\', path.n) ? STR("ends in %5Cbackslash%5C") : path;
}

/* What every reader below must find: sorted lines of hex, name and bytes. */
static const char expected[] = "import os\n"
                               "def show(pairs):\n"
                               "    for name, data in sorted(pairs):\n"
                               "        print(name.hex(), data.hex())\n";

static void write_entry(int fd, struct archive *a, struct str path, struct str bytes)
{
    struct buf out;
    struct err e;

    buf_init(&out, MiB);
    assert_int_equal(archive_begin(a, path, bytes.n, 1769860800123, &out, &e), 0);
    archive_bytes(a, bytes);
    assert_int_equal(buf_put(&out, bytes), 0);
    assert_int_equal(archive_finish(a, &out, &e), 0);
    assert_int_equal(fd_write_all(fd, buf_str(&out), &e), 0);
    buf_done(&out);
}

static void write_end(int fd, struct archive *a)
{
    struct buf out;
    struct err e;

    buf_init(&out, ARCHIVE_DIRECTORY_MAX);
    assert_int_equal(archive_end(a, &out, &e), 0);
    assert_int_equal(fd_write_all(fd, buf_str(&out), &e), 0);
    assert_int_equal(a->at, lseek(fd, 0, SEEK_CUR)); /* it knows where it is */
    buf_done(&out);
}

static int create(const struct scratch *d, const char *name)
{
    int fd = openat(d->fd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    return fd;
}

static void write_all(const struct scratch *d, const char *name,
                      const struct archive_format *format)
{
    AUTO_CLOSE int fd = create(d, name);
    struct archive a;

    archive_init(&a, format);
    for (size_t i = 0; i < COUNT(files); i++)
        write_entry(fd, &a, files[i].path, files[i].bytes);
    write_end(fd, &a);
    archive_done(&a);
}

static void put_hex(struct buf *out, struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        assert_int_equal(buf_printf(out, "%02x", (unsigned char)s.p[i]), 0);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines that show() prints when everything is there. */
static char *want(void)
{
    char *lines[COUNT(files)];
    struct buf all;

    buf_init(&all, MiB);
    for (size_t i = 0; i < COUNT(files); i++) {
        struct buf line;
        buf_init(&line, MiB);
        put_hex(&line, entry_name(files[i].path));
        assert_int_equal(buf_printf(&line, " "), 0);
        put_hex(&line, files[i].bytes);
        assert_int_equal(buf_put(&line, STR("\n\0")), 0);
        lines[i] = line.p;
    }
    qsort(lines, COUNT(lines), sizeof(lines[0]), by_text);
    for (size_t i = 0; i < COUNT(lines); i++) {
        assert_int_equal(buf_printf(&all, "%s", lines[i]), 0);
        free(lines[i]);
    }
    return all.p;
}

/* Runs a script of bash in the directory, and takes what it prints. */
static void ask(const struct scratch *d, const char *script, char *ret, size_t size)
{
    size_t n = 0;
    ssize_t got;
    int out[2], status = -1;
    pid_t pid;

    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (fchdir(d->fd) == 0 && dup2(out[1], STDOUT_FILENO) >= 0 &&
            dup2(out[1], STDERR_FILENO) >= 0)
            execl("/bin/bash", "bash", "-c", script, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    while (n < size - 1 && (got = read(out[0], ret + n, size - 1 - n)) > 0)
        n += (size_t)got;
    ret[n] = '\0';
    close(out[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status != 0)
        fail_msg("%s\nsaid: %s", script, ret);
}

static void reads(const struct scratch *d, const char *script, const char *code)
{
    AUTO_FREE char *wanted = want();
    char got[32768];
    struct buf file;

    buf_init(&file, MiB);
    assert_int_equal(buf_printf(&file, "%s%s", expected, code), 0);
    scratch_put(d, "read.py", buf_str(&file));
    buf_done(&file);
    ask(d, script, got, sizeof(got));
    assert_string_equal(got, wanted);
}

static const char walk[] = "top = b'out/'\n"
                           "show((os.path.join(at, f)[len(top):], open(os.path.join(at, f), 'rb')"
                           ".read()) for at, _, names in os.walk(top) for f in names)\n";

static int open_scratch(void **state)
{
    static struct scratch d;

    *state = &d;
    return scratch_open(&d);
}

static int close_scratch(void **state)
{
    return scratch_close(*state);
}

static void test_python_reads_tar(void **state)
{
    write_all(*state, "a.tar", &tar_format);
    reads(*state, "/usr/bin/python3 read.py",
          "import tarfile\n"
          "t = tarfile.open('a.tar', 'r|', encoding='utf-8', errors='surrogateescape')\n"
          "show((os.fsencode(m.name), t.extractfile(m).read()) for m in t)\n");
}

static void test_tar_reads_tar(void **state)
{
    write_all(*state, "a.tar", &tar_format);
    reads(*state, "mkdir out && tar -xf a.tar -C out && /usr/bin/python3 read.py", walk);
}

static void test_python_reads_zip(void **state)
{
    write_all(*state, "a.zip", &zip_format);
    reads(*state, "/usr/bin/python3 read.py",
          "import zipfile\n"
          "z = zipfile.ZipFile('a.zip')\n"
          "assert z.testzip() is None\n"
          "show((i.orig_filename.encode('utf-8' if i.flag_bits & 0x800 else 'cp437'), z.read(i))\n"
          "     for i in z.infolist())\n");
}

static void test_unzip_reads_zip(void **state)
{
    write_all(*state, "a.zip", &zip_format);
    /* ^: names as they are, controls included. Bytes that are no text it takes for cp437. */
    reads(*state,
          "mkdir out && LC_ALL=C.UTF-8 unzip -q -^ a.zip -d out && "
          "/usr/bin/python3 read.py",
          walk);
}

static void test_times_and_modes_are_kept(void **state)
{
    static const char script[] =
        "TZ=UTC /usr/bin/python3 -c \"\n"
        "import tarfile, zipfile\n"
        "m = tarfile.open('a.tar').getmembers()[0]\n"
        "print(m.mtime, oct(m.mode), m.isreg())\n"
        "i = zipfile.ZipFile('a.zip').infolist()[0]\n"
        "print(i.date_time, oct(i.external_attr >> 16), i.extra.hex())\n\"";
    char got[512];

    write_all(*state, "a.tar", &tar_format);
    write_all(*state, "a.zip", &zip_format);
    ask(*state, script, got, sizeof(got));
    assert_string_equal(got, "1769860800 0o644 True\n"
                             "(2026, 1, 31, 12, 0, 0) 0o100644 5554050001c0ee7d69\n");
}

static void test_nothing_is_an_archive_too(void **state)
{
    static const struct archive_format *const formats[] = {&tar_format, &zip_format};
    char got[64];

    for (size_t i = 0; i < COUNT(formats); i++) {
        AUTO_CLOSE int fd = create(*state, formats[i]->name);
        struct archive a;
        archive_init(&a, formats[i]);
        write_end(fd, &a);
        archive_done(&a);
    }
    ask(*state,
        "/usr/bin/python3 -c \"import tarfile, zipfile; print(tarfile.open('tar').getnames(), "
        "zipfile.ZipFile('zip').namelist())\"",
        got, sizeof(got));
    assert_string_equal(got, "[] []\n");
}

/* A hole in the file stands for the bytes, whose checksum is put together from halves. */
static void write_large(int fd, struct archive *a, struct str path, uint64_t size)
{
    static const unsigned char zeros[4096];
    uLong one = crc32_z(crc32(0, NULL, 0), zeros, sizeof(zeros)), all = crc32(0, NULL, 0);
    struct buf out;
    struct err e;

    assert_int_equal(size % sizeof(zeros), 0);
    for (uint64_t n = sizeof(zeros), left = size; left > 0; n *= 2) {
        if (left & n) {
            all = crc32_combine(all, one, (z_off_t)n);
            left -= n;
        }
        one = crc32_combine(one, one, (z_off_t)n);
    }
    buf_init(&out, MiB);
    assert_int_equal(archive_begin(a, path, size, 0, &out, &e), 0);
    assert_int_equal(fd_write_all(fd, buf_str(&out), &e), 0);
    out.n = 0;
    a->at += size;
    a->now.crc = (uint32_t)all;
    assert_true(lseek(fd, (off_t)size, SEEK_CUR) > 0);
    assert_int_equal(archive_finish(a, &out, &e), 0);
    assert_int_equal(fd_write_all(fd, buf_str(&out), &e), 0);
    buf_done(&out);
}

static void write_large_all(const struct scratch *d, const char *name,
                            const struct archive_format *format)
{
    AUTO_CLOSE int fd = create(d, name);
    struct archive a;

    archive_init(&a, format);
    write_large(fd, &a, STR("nine"), 9 * GiB);
    write_entry(fd, &a, STR("behind"), STR("it"));
    write_end(fd, &a);
    archive_done(&a);
}

static void test_large_files(void **state)
{
    static const char script[] =
        "/usr/bin/python3 -c \"\n"
        "import tarfile, zipfile\n"
        "t = tarfile.open('big.tar')\n"
        "print([(m.name, m.size) for m in t], t.extractfile('behind').read())\n"
        "z = zipfile.ZipFile('big.zip')\n"
        "print([(i.filename, i.file_size, i.compress_size) for i in z.infolist()], "
        "z.read('behind'))\n"
        "assert z.open('nine').read(5) == bytes(5)\n\"";
    char got[512];

    write_large_all(*state, "big.tar", &tar_format);
    write_large_all(*state, "big.zip", &zip_format);
    ask(*state, script, got, sizeof(got));
    assert_string_equal(got, "[('nine', 9663676416), ('behind', 2)] b'it'\n"
                             "[('nine', 9663676416, 9663676416), ('behind', 2, 2)] b'it'\n");
}

static void test_many_files(void **state)
{
    AUTO_CLOSE int fd = create(*state, "many.zip");
    struct archive a;
    char got[64];

    archive_init(&a, &zip_format);
    for (unsigned i = 0; i < 70000; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%u", i);
        write_entry(fd, &a, str_of(name), STR(""));
    }
    write_end(fd, &a);
    archive_done(&a);
    ask(*state,
        "/usr/bin/python3 -c \"import zipfile; z = zipfile.ZipFile('many.zip').namelist(); "
        "print(len(z), z[-1])\"",
        got, sizeof(got));
    assert_string_equal(got, "70000 f69999\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scratch, close_scratch)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_python_reads_tar),
        TEST(test_tar_reads_tar),
        TEST(test_python_reads_zip),
        TEST(test_unzip_reads_zip),
        TEST(test_times_and_modes_are_kept),
        TEST(test_nothing_is_an_archive_too),
        TEST(test_large_files),
        TEST(test_many_files),
    };
    return RUN(tests);
}
