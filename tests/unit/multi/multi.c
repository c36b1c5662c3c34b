#include "multi/multi.h"
#include "unit.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONG_MS 600000 /* that a transfer may take */
#define SOON_MS 5000   /* far less */

struct seen {
    struct loop *loop;
    struct multi *multi;
    int silent; /* a listening socket that answers nothing */
    char url[64];
    int told;
    bool late;
};

static void on_told(void *arg)
{
    struct seen *s = arg;

    s->told++;
    loop_stop(s->loop);
}

static void on_late(void *arg)
{
    struct seen *s = arg;

    s->late = true;
    loop_stop(s->loop);
}

static int open_multi(void **state)
{
    struct seen *s = mem_zalloc(sizeof(*s));
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);

    *state = s;
    s->loop = loop_new(&(struct err){0});
    s->multi = multi_new(s->loop, 1, 0, on_told, s);
    s->silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(s->silent, (struct sockaddr *)&a, n) < 0 || listen(s->silent, 4) < 0 ||
        getsockname(s->silent, (struct sockaddr *)&a, &n) < 0)
        return -1;
    snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%d/", ntohs(a.sin_port));
    return 0;
}

static int close_multi(void **state)
{
    struct seen *s = *state;

    multi_free(s->multi);
    loop_free(s->loop);
    fd_closep(&s->silent);
    free(s);
    return 0;
}

/* Between a kick and the loop, libcurl may say for another transfer that nothing is due for long.
 */
static void test_a_kick_outlives_what_libcurl_says(void **state)
{
    struct seen *s = *state;
    CURLM *curl = multi_handle(s->multi);
    CURL *easy = curl_easy_init();
    struct timer *late = timer_new(s->loop, on_late, s);
    int running;
    long ms = 0;

    assert_int_equal(curl_easy_setopt(easy, CURLOPT_URL, s->url), CURLE_OK);
    assert_int_equal(curl_easy_setopt(easy, CURLOPT_PROXY, ""), CURLE_OK);
    assert_int_equal(curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)LONG_MS), CURLE_OK);
    assert_int_equal(curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)LONG_MS), CURLE_OK);
    assert_int_equal(curl_multi_add_handle(curl, easy), CURLM_OK);
    while (ms <= SOON_MS) {
        assert_int_equal(curl_multi_socket_action(curl, CURL_SOCKET_TIMEOUT, 0, &running),
                         CURLM_OK);
        assert_int_equal(curl_multi_timeout(curl, &ms), CURLM_OK);
    }
    multi_kick(s->multi);
    assert_int_equal(curl_multi_socket_action(curl, CURL_SOCKET_TIMEOUT, 0, &running), CURLM_OK);
    timer_set(late, SOON_MS);
    loop_run(s->loop);
    assert_true(s->told > 0);
    assert_false(s->late);
    timer_free(late);
    assert_int_equal(curl_multi_remove_handle(curl, easy), CURLM_OK);
    curl_easy_cleanup(easy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_kick_outlives_what_libcurl_says, open_multi,
                                        close_multi),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
