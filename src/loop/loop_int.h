/* Private to the loop: its workers. */
#pragma once

#include "loop/loop.h"

struct workers;

struct workers *workers_new(struct loop *l);
/* Waits until work is finished and about to be told; false when there is none under way. */
bool workers_wait(struct workers *k);
void workers_free(struct workers *k); /* with no work under way */
struct workers *loop_workers(struct loop *l);
