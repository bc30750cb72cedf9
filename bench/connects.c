/*
 * Makes new connections through several nodes by turns and measures each. In C and in one thread, because a packet that
 * crosses network namespaces by veth is worked on by whoever sent it: no thread waits for another, so what is measured
 * is the kernel's way there and back, and not the scheduler.
 *
 * connects ROUNDS EACH < flows: in each round every series makes EACH connections, in an order of its own. Flows are
 * lines: N, a node, with the network namespaces of client and server and the port served; T or U and the number of its
 * node, a series (TCP: until it is connected; UDP: a datagram and its answer); D, a destination of the series before it,
 * with address and port.
 *
 * Prints for each turn the number of the series and the nanoseconds of its connections. One that fails ends it all.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST_NODES = 64, MOST_SERIES = 256 };

struct node { int client_netns, listening, receiving; };
struct series { struct node *node; int is_udp; struct sockaddr_in *to; int count, room, next; };

static struct node nodes[MOST_NODES];
static struct series all[MOST_SERIES];
static int node_count, series_count, order[MOST_SERIES];

static int must(int result, const char *what) {
    if (result < 0) {
        fprintf(stderr, "connects: %s: %m\n", what);
        exit(1);
    }
    return result;
}

static _Noreturn void fail(const char *what, const struct series *series, const struct sockaddr_in *to) {
    fprintf(stderr, "connects: %s of series %ld to %s:%d failed: %m\n", what, (long)(series - all),
            inet_ntoa(to->sin_addr), ntohs(to->sin_port));
    exit(1);
}

static _Noreturn void refuse(const char *what) {
    fprintf(stderr, "connects: cannot read its input: %s\n", what);
    exit(1);
}

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

/* What has not come after a second is lost: no other process has to run for it. */
static int new_socket(int type) {
    int fd = must(socket(AF_INET, type, 0), "socket");
    struct timeval second = {.tv_sec = 1};
    must(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second), "SO_RCVTIMEO");
    must(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second), "SO_SNDTIMEO");
    return fd;
}

static int serve(int type, int port) {
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(port)};
    int yes = 1, fd = new_socket(type);
    must(bind(fd, (struct sockaddr *)&any, sizeof any), "bind");
    if (type == SOCK_STREAM) must(listen(fd, 16), "listen");
    else must(setsockopt(fd, SOL_IP, IP_PKTINFO, &yes, sizeof yes), "IP_PKTINFO");
    return fd;
}

static void add_node(const char *client, const char *server, int port) {
    if (node_count == MOST_NODES) refuse("too many nodes");
    struct node *node = &nodes[node_count++];
    node->client_netns = must(open(client, O_RDONLY | O_CLOEXEC), client);
    int netns = must(open(server, O_RDONLY | O_CLOEXEC), server);
    must(setns(netns, CLONE_NEWNET), server);
    close(netns);
    node->listening = serve(SOCK_STREAM, port);
    node->receiving = serve(SOCK_DGRAM, port);
}

static void add_destination(struct series *series, const char *address, int port) {
    if (series->count == series->room) {
        series->room = series->room ? 2 * series->room : 16;
        series->to = realloc(series->to, series->room * sizeof *series->to);
    }
    struct sockaddr_in *to = &series->to[series->count++];
    *to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, address, &to->sin_addr);
}

static void add_series(int is_udp, int node) {
    if (series_count == MOST_SERIES || node < 0 || node >= node_count) refuse("too many series, or no such node");
    all[series_count++] = (struct series){.node = &nodes[node], .is_udp = is_udp};
}

static void read_flows(void) {
    char line[512], first[256], second[256];
    int number;
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "N %255s %255s %d", first, second, &number) == 3) add_node(first, second, number);
        else if (sscanf(line, "T %d", &number) == 1) add_series(0, number);
        else if (sscanf(line, "U %d", &number) == 1) add_series(1, number);
        else if (series_count > 0 && sscanf(line, "D %255s %d", first, &number) == 2)
            add_destination(&all[series_count - 1], first, number);
        else refuse(line);
    }
    for (int i = 0; i < series_count; i++) if (all[i].count == 0) refuse("a series without a destination");
}

/* Reset when it is closed, so that neither side keeps anything of it. */
static long connect_once(const struct series *series, const struct sockaddr_in *to) {
    int fd = new_socket(SOCK_STREAM);
    struct linger at_once = {.l_onoff = 1};
    must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), "SO_LINGER");
    long begun = now();
    if (connect(fd, (const struct sockaddr *)to, sizeof *to)) fail("connect", series, to);
    long took = now() - begun;
    int accepted = accept(series->node->listening, NULL, NULL);
    if (accepted < 0) fail("accept", series, to);
    close(fd);
    close(accepted);
    return took;
}

/* Answers with the address that was asked. */
static int answer(int fd) {
    char byte, control[CMSG_SPACE(sizeof(struct in_pktinfo))];
    struct sockaddr_in from;
    struct iovec data = {&byte, 1};
    struct msghdr message = {&from, sizeof from, &data, 1, control, sizeof control, 0};
    if (recvmsg(fd, &message, 0) != 1) return -1;
    ((struct in_pktinfo *)CMSG_DATA(CMSG_FIRSTHDR(&message)))->ipi_ifindex = 0;
    return sendmsg(fd, &message, 0);
}

static long exchange_once(const struct series *series, const struct sockaddr_in *to) {
    char byte = 'x';
    int fd = new_socket(SOCK_DGRAM);
    if (connect(fd, (const struct sockaddr *)to, sizeof *to)) fail("connect", series, to);
    long begun = now();
    if (send(fd, &byte, 1, 0) != 1) fail("send", series, to);
    if (answer(series->node->receiving) != 1) fail("the server's part", series, to);
    if (recv(fd, &byte, 1, 0) != 1) fail("recv", series, to);
    long took = now() - begun;
    close(fd);
    return took;
}

static void take_turn(struct series *series, int each) {
    must(setns(series->node->client_netns, CLONE_NEWNET), "setns");
    printf("%ld", (long)(series - all));
    for (int i = 0; i < each; i++) {
        const struct sockaddr_in *to = &series->to[series->next++ % series->count];
        printf(" %ld", series->is_udp ? exchange_once(series, to) : connect_once(series, to));
    }
    putchar('\n');
}

/* By lot, so that no series always comes after the same one, or twice in a row. */
static void shuffle(void) {
    for (int i = 0; i < series_count; i++) {
        int other = rand() % (i + 1);
        order[i] = order[other];
        order[other] = i;
    }
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 1, each = argc > 2 ? atoi(argv[2]) : 1;
    /* Not moved about: what is in a processor's caches stays there. */
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    must(sched_setaffinity(0, sizeof here, &here), "sched_setaffinity");
    read_flows();
    for (int round = 0; round < rounds; round++) {
        shuffle();
        for (int i = 0; i < series_count; i++) take_turn(&all[order[i]], each);
    }
    return 0;
}
