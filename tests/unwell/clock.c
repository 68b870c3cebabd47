/* Loaded before libc: the clock of this machine is an hour behind. What measures time that passes is right. */

#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *at)
{
    int failed = (int)syscall(SYS_clock_gettime, clock, at);
    if (failed == 0 && clock == CLOCK_REALTIME)
        at->tv_sec -= 3600;
    return failed;
}
