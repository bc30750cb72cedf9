/*
 * Runs CNI plugins as a container runtime does and measures them. In C, because starting a program and hearing of its end
 * takes Node.js as long as a plugin takes for its work.
 *
 * run-plugins LANES < jobs: so many jobs at a time. A job is lines: for each of its plugins P and its path, I and its
 * configuration, E and a variable as often as needed; then X. A plugin gets the result of the one before it as prevResult.
 *
 * Prints for each job, in the order they end, its number, the bytes of the last result and the nanoseconds it took, then
 * that result; at the end the nanoseconds of all. A plugin that fails ends it all.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_JOBS = 4096, MOST_PLUGINS = 4, MOST_VARIABLES = 16, MOST_LANES = 64, LARGEST = 1 << 16 };

struct plugin { char *path, *config, *variables[MOST_VARIABLES + 1]; int variable_count; };
struct job { struct plugin plugins[MOST_PLUGINS]; int plugin_count; };
struct lane { int job, plugin, output; pid_t pid; long long begun; size_t length; char result[LARGEST]; };

static struct job jobs[MOST_JOBS];
static struct lane lanes[MOST_LANES];
static int job_count, next_job;

static _Noreturn void fail(const char *what, const char *which) {
    fprintf(stderr, "run-plugins: %s: %s\n", what, which);
    exit(1);
}

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void read_jobs(void) {
    char *line = NULL;
    size_t room = 0;
    struct plugin *plugin = NULL;
    for (ssize_t length; (length = getline(&line, &room, stdin)) > 0;) {
        line[length - 1] = 0;
        struct job *job = &jobs[job_count];
        if (*line == 'P') {
            if (job->plugin_count == MOST_PLUGINS) fail("too many plugins", line);
            plugin = &job->plugins[job->plugin_count++];
            plugin->path = strdup(line + 1);
        } else if (*line == 'X') {
            if (++job_count == MOST_JOBS) fail("too many jobs", line);
        } else if (*line == 'I' && plugin) {
            plugin->config = strdup(line + 1);
        } else if (plugin && plugin->variable_count < MOST_VARIABLES) {
            plugin->variables[plugin->variable_count++] = strdup(line + 1);
        } else fail("unreadable", line);
    }
}

/* Nobody reads while it is written: a configuration fits into a pipe. */
static void give_config(int fd, const struct lane *lane, const char *config) {
    if (lane->length > 0) dprintf(fd, "{\"prevResult\":%s,%s", lane->result, config + 1);
    else dprintf(fd, "%s", config);
    close(fd);
}

static void start_plugin(struct lane *lane) {
    struct plugin *plugin = &jobs[lane->job].plugins[lane->plugin];
    int input[2], output[2];
    if (pipe2(input, O_CLOEXEC) || pipe2(output, O_CLOEXEC)) fail("cannot make a pipe for", plugin->path);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input[0], 0);
    posix_spawn_file_actions_adddup2(&actions, output[1], 1);
    char *arguments[] = {plugin->path, NULL};
    if (posix_spawn(&lane->pid, plugin->path, &actions, NULL, arguments, plugin->variables)) fail("cannot run", plugin->path);
    posix_spawn_file_actions_destroy(&actions);
    close(input[0]);
    close(output[1]);
    give_config(input[1], lane, plugin->config);
    lane->output = output[0];
    lane->length = 0;
}

static void start_job(struct lane *lane) {
    lane->pid = 0;
    if (next_job == job_count) return;
    lane->job = next_job++;
    lane->plugin = 0;
    lane->length = 0;
    lane->begun = now();
    start_plugin(lane);
}

/* Something of the plugin's result is there, or it has ended. */
static void advance(struct lane *lane) {
    ssize_t n = read(lane->output, lane->result + lane->length, LARGEST - 1 - lane->length);
    if (n > 0) {
        lane->length += n;
        return;
    }
    int status;
    waitpid(lane->pid, &status, 0);
    close(lane->output);
    lane->result[lane->length] = 0;
    if (status) fail(jobs[lane->job].plugins[lane->plugin].path, lane->result);
    if (++lane->plugin < jobs[lane->job].plugin_count) {
        start_plugin(lane);
        return;
    }
    printf("%d %zu %lld\n%s\n", lane->job, lane->length, now() - lane->begun, lane->result);
    start_job(lane);
}

int main(int argc, char **argv) {
    int lane_count = argc > 1 ? atoi(argv[1]) : 1;
    if (lane_count < 1 || lane_count > MOST_LANES) fail("cannot run so many at a time", argv[1]);
    /* Some end without reading their configuration. */
    signal(SIGPIPE, SIG_IGN);
    read_jobs();
    long long begun = now();
    for (int i = 0; i < lane_count; i++) start_job(&lanes[i]);
    for (;;) {
        struct pollfd waiting[MOST_LANES];
        struct lane *whose[MOST_LANES];
        int count = 0;
        for (int i = 0; i < lane_count; i++) {
            if (!lanes[i].pid) continue;
            whose[count] = &lanes[i];
            waiting[count++] = (struct pollfd){.fd = lanes[i].output, .events = POLLIN};
        }
        if (count == 0) break;
        if (poll(waiting, count, -1) < 0) fail("cannot wait", "poll");
        for (int i = 0; i < count; i++) if (waiting[i].revents) advance(whose[i]);
    }
    printf("%lld\n", now() - begun);
    return 0;
}
