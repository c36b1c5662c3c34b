/* What a seccomp program answers, without a kernel that runs it: so the program for another machine
 * can be asked, too. Only the instructions that libseccomp writes. */
#pragma once

#include "unit.h"

#include <linux/filter.h>
#include <linux/seccomp.h>

/* The action for one call, as SECCOMP_RET_*. */
static inline uint32_t bpf_ask(const struct buf *program, const struct seccomp_data *call)
{
    const struct sock_filter *code = (const struct sock_filter *)(uintptr_t)program->p;
    size_t count = program->n / sizeof(*code);
    uint32_t a = 0;

    for (size_t at = 0; at < count; at++) {
        const struct sock_filter *i = &code[at];
        bool is = false;
        switch (i->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            assert_true(i->k + sizeof(a) <= sizeof(*call));
            memcpy(&a, (const char *)call + i->k, sizeof(a));
            continue;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= i->k;
            continue;
        case BPF_JMP | BPF_JA:
            at += i->k;
            continue;
        case BPF_RET | BPF_K:
            return i->k;
        case BPF_JMP | BPF_JEQ | BPF_K:
            is = a == i->k;
            break;
        case BPF_JMP | BPF_JGT | BPF_K:
            is = a > i->k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            is = a >= i->k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            is = (a & i->k) != 0;
            break;
        default:
            fail_msg("instruction %zu has an unknown code, %u", at, i->code);
        }
        at += is ? i->jt : i->jf;
    }
    fail_msg("the program has no end");
    return 0;
}
