/* Shifts the time of day of a process by a number of nanoseconds in a file, which may change at any moment.

Preloaded. CLOCK_MONOTONIC stays. Waits until a time of day are given to the kernel in its own time, since its clock is
not shifted; one that has begun does not notice a jump.
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define EARLIEST 1000000000LL /* seconds: a wait until an earlier moment is of the monotonic clock */

static const volatile int64_t *shift_at;

static int (*next_clock_gettime)(clockid_t, struct timespec *);
static int (*next_cond_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
static int (*next_sem_timedwait)(sem_t *, const struct timespec *);

__attribute__((constructor)) static void open_shift(void)
{
    next_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    next_cond_timedwait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    next_sem_timedwait = dlsym(RTLD_NEXT, "sem_timedwait");
    const char *path = getenv("FABRICTUNE_CHAOS_CLOCK");
    int descriptor = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (descriptor < 0)
        return;
    void *memory = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, descriptor, 0);
    close(descriptor);
    if (memory != MAP_FAILED)
        shift_at = memory;
}

static struct timespec shifted(struct timespec time, int64_t by)
{
    int64_t total = (int64_t)time.tv_sec * SECOND + time.tv_nsec + by;
    return (struct timespec){.tv_sec = total / SECOND, .tv_nsec = total % SECOND};
}

static int64_t shift(void) { return shift_at ? *shift_at : 0; }

int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (!next_clock_gettime)
        next_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    int result = next_clock_gettime(clock, time);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        *time = shifted(*time, shift());
    return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
    (void)zone;
    struct timespec now;
    int result = clock_gettime(CLOCK_REALTIME, &now);
    if (result == 0)
        *time = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return result;
}

time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until)
{
    struct timespec own = until->tv_sec > EARLIEST ? shifted(*until, -shift()) : *until;
    return next_cond_timedwait(condition, mutex, &own);
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until)
{
    struct timespec own = shifted(*until, -shift());
    return next_sem_timedwait(semaphore, &own);
}
