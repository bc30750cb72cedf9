/*
 * nodeplane-cni: what a container runtime runs on the host, where there is no Node.js. It hands its request to the agent
 * and prints the agent's answer. Only three things it does by itself: VERSION; loopback, when it is called by that name;
 * and while the agent is away it keeps DEL requests in a directory, for the agent to settle when it is back.
 *
 * Request and answer are described in src/agent/cni/server/protocol.ts.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define SOCKET_PATH "/run/nodeplane/cni.sock"
#define SPOOL_DIR "/var/lib/nodeplane/cni/spool"
#define VERSIONS "\"0.1.0\",\"0.2.0\",\"0.3.0\",\"0.3.1\",\"0.4.0\",\"1.0.0\",\"1.1.0\""
#define LARGEST_CONFIG (2 << 20)
#define LARGEST_ANSWER (1 << 20)
#define LARGEST_ENVIRONMENT (1 << 18)
#define STDIN_TIMEOUT_MS 10000

/* Numbers of CNI errors. */
enum { INCOMPATIBLE = 1, ENVIRONMENT = 4, IO_FAILURE = 5, NETNS = 8, TRY_AGAIN = 11, UNAVAILABLE = 50, REFUSED = 105 };

static const char *const verbs[] = {"ADD", "DEL", "CHECK", "GC", "STATUS"};
/* The request as it is sent and kept: a header, the variables, the configuration, which `config` points to. */
enum { HEADER = 16, VARIABLES_END = HEADER + LARGEST_ENVIRONMENT };
static char request[VARIABLES_END + LARGEST_CONFIG + 1], answer[LARGEST_ANSWER], *config;
static size_t request_length = HEADER;

extern char **environ;

static const char *variable(const char *name) { return getenv(name) ? getenv(name) : ""; }

static void print_text(const char *text) {
    putchar('"');
    for (; *text; text++) {
        int plain = *text >= ' ' && *text <= '~' && *text != '"' && *text != '\\';
        printf(plain ? "%c" : "\\u%04x", (unsigned char)*text);
    }
    putchar('"');
}

/* Prints the error object of the CNI specification and ends. */
static _Noreturn void fail(int code, const char *message, const char *details) {
    printf("{\"cniVersion\":\"1.1.0\",\"code\":%d,\"msg\":", code);
    print_text(message);
    printf(",\"details\":");
    print_text(details);
    puts("}");
    exit(1);
}

/* Waits until standard input has more or was closed; a runtime that does neither would keep this process for ever. */
static int input_comes(void) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    int ready;
    while ((ready = poll(&input, 1, STDIN_TIMEOUT_MS)) < 0 && errno == EINTR) {}
    if (ready == 0) errno = ETIMEDOUT;
    return ready > 0;
}

/* Reads up to `length` bytes; fewer only at the end of the file (errno is 0 then) and after an error. */
static size_t read_all(int fd, char *to, size_t length) {
    size_t done = 0;
    for (errno = 0; done < length;) {
        if (fd == 0 && !input_comes()) break;
        ssize_t n = read(fd, to + done, length - done);
        if (n == 0 || (n < 0 && errno != EINTR)) break;
        if (n > 0) done += n;
        errno = 0;
    }
    return done;
}

static int write_all(int fd, const void *from, size_t length) {
    for (size_t done = 0; done < length;) {
        ssize_t n = write(fd, (const char *)from + done, length - done);
        if (n >= 0) done += n;
        else if (errno != EINTR) return 0;
    }
    return 1;
}

/* Where the agent listens. */
static const char *socket_path(void) {
    return *variable("NODEPLANE_CNI_SOCKET") ? variable("NODEPLANE_CNI_SOCKET") : SOCKET_PATH;
}

static void put32(char *at, size_t value) { for (int i = 0; i < 4; i++) at[i] = value >> (8 * i); }

static void make_request(void) {
    for (char **entry = environ; *entry; entry++) {
        size_t length = strlen(*entry) + 1;
        if (strncmp(*entry, "CNI_", 4)) continue;
        if (request_length + length > VARIABLES_END) fail(ENVIRONMENT, "The CNI_ variables are longer than 256 KiB", "");
        memcpy(request + request_length, *entry, length);
        request_length += length;
    }
    config = request + request_length;
    size_t config_length = read_all(0, config, LARGEST_CONFIG + 1);
    if (errno) fail(IO_FAILURE, "Cannot read the network configuration from standard input", strerror(errno));
    if (config_length > LARGEST_CONFIG) fail(IO_FAILURE, "The network configuration on standard input is longer than 2 MiB", "");
    memcpy(request, "NPCQ\1", 5);
    put32(request + 8, request_length - HEADER);
    put32(request + 12, config_length);
    request_length += config_length;
}

/* The agent's socket, or -1 when nobody listens there. */
static int connect_agent(const char *command) {
    const char *path = socket_path();
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) fail(ENVIRONMENT, "NODEPLANE_CNI_SOCKET is too long for a socket", path);
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* A little less than the runtimes wait, so that they get a sentence. */
    struct timeval wait = {.tv_sec = strcmp(command, "ADD") ? 50 : 200}, soon = {.tv_sec = 10};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon);
    /* A signal ends the wait for a place in the queue of a unix socket, and leaves it as it was. */
    int failed;
    while ((failed = connect(fd, (struct sockaddr *)&address, sizeof address)) && errno == EINTR) {}
    if (!failed) return fd;
    if (errno != ENOENT && errno != ECONNREFUSED) fail(TRY_AGAIN, "Cannot connect to the nodeplane agent", strerror(errno));
    close(fd);
    return -1;
}

/* Makes an ADD the DEL of the same attachment. */
static int become_delete(void) {
    for (char *at = request + HEADER; at < config; at += strlen(at) + 1)
        if (!strcmp(at, "CNI_COMMAND=ADD")) return memcpy(at, "CNI_COMMAND=DEL", sizeof "CNI_COMMAND=DEL") != NULL;
    return 0;
}

/*
 * Hands the request over, with the namespace's descriptor if there is one, prints the answer and ends. Returns 0 when the
 * agent went away without an answer, and 1 when nobody reads the result of an ADD: a killed runtime never asks for the DEL,
 * which the request is then.
 */
static int ask(int fd, int netns) {
    union { struct cmsghdr header; char bytes[CMSG_SPACE(sizeof(int))]; } control = {0};
    struct iovec part = {request, request_length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    request[6] = netns >= 0;
    if (netns >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof netns), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), &netns, sizeof netns);
    }
    /* One that does not read it all may have answered all the same. */
    ssize_t sent;
    while ((sent = sendmsg(fd, &message, 0)) < 0 && errno == EINTR) {}
    if (sent >= 0) write_all(fd, request + sent, request_length - sent);
    unsigned char head[12];
    if (read_all(fd, (char *)head, sizeof head) == sizeof head) {
        size_t length = head[8] | head[9] << 8 | head[10] << 16 | (size_t)head[11] << 24;
        if (memcmp(head, "NPCA\1\0", 6))
            fail(TRY_AGAIN, "The nodeplane agent is of another version than this plugin", "it installs its own when it starts");
        if (length > sizeof answer) fail(IO_FAILURE, "The answer of the nodeplane agent is longer than 1 MiB", "");
        if (read_all(fd, answer, length) == length) {
            int failed = head[6] || head[7];
            if (write_all(1, answer, length) || failed || !become_delete()) exit(failed);
            return 1;
        }
    }
    if (errno == EAGAIN) fail(TRY_AGAIN, "The nodeplane agent did not answer in time", "");
    return 0;
}

/* Keeps the request durably. The file is complete whenever it has its name; nothing of the request is in the name. */
static void keep(int spool, char name[80]) {
    struct timespec now;
    char temporary[96];
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(name, 80, "%012lld.%09ld-%d.request", (long long)now.tv_sec, now.tv_nsec, (int)getpid());
    snprintf(temporary, sizeof temporary, ".%s.tmp", name);
    request[6] = 0;
    int fd = openat(spool, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && write_all(fd, request, request_length) && fsync(fd) == 0 &&
        renameat(spool, temporary, spool, name) == 0 && fsync(spool) == 0) return (void)close(fd);
    int error = errno;
    if (fd >= 0) unlinkat(spool, temporary, 0);
    fail(TRY_AGAIN, "The nodeplane agent is not running, and this DEL cannot be kept for it", strerror(error));
}

static _Noreturn void delete_without_agent(void) {
    char name[80];
    if (!*variable("CNI_CONTAINERID")) fail(ENVIRONMENT, "required env variables [CNI_CONTAINERID] missing", "");
    /* The agent makes it before it installs this program. */
    const char *path = *variable("NODEPLANE_CNI_SPOOL") ? variable("NODEPLANE_CNI_SPOOL") : SPOOL_DIR;
    int spool = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (spool < 0) fail(TRY_AGAIN, "The nodeplane agent is not running, and the directory for DEL requests cannot be opened", strerror(errno));
    keep(spool, name);
    /* An agent that started meanwhile may have looked there too early. It listens before it looks. */
    int fd = connect_agent("DEL");
    if (fd >= 0) {
        unlinkat(spool, name, 0);
        ask(fd, -1);
        keep(spool, name);
    }
    fputs("nodeplane-cni: the agent is not running; it will remove the attachment when it is back\n", stderr);
    exit(0);
}

/* The text of a top-level value of the configuration; NULL when there is none. Good enough for what libcni writes. */
static const char *value_of(const char *key, size_t *length) {
    const char *at = strchr(config, '{'), *name = NULL, *start = NULL;
    int depth = 0;
    for (; at && *at; at++) {
        if (*at == '"') {
            const char *begin = at + 1;
            for (at++; *at && *at != '"'; at++) if (*at == '\\' && at[1]) at++;
            if (!*at) return NULL;
            if (depth == 1 && !start) name = (size_t)(at - begin) == strlen(key) && !memcmp(begin, key, at - begin) ? begin : NULL;
        } else if (*at == '{' || *at == '[') {
            depth++;
        } else if (*at == ':' && depth == 1) {
            for (start = at + 1; *start && strchr(" \t\r\n", *start);) start++;
            at = start - 1;
        } else if (depth == 1 && (*at == ',' || *at == '}')) {
            *length = start ? at - start : 0;
            if (start && name) return start;
            start = name = NULL;
        }
        if (*at == '}' || *at == ']') depth--;
    }
    return NULL;
}

/* 127.0.0.1 comes with the interface; ::1 does so only where IPv6 is not switched off. */
static int has_ipv6_loopback(void) {
    char text[4096];
    int fd = open("/proc/self/net/if_inet6", O_RDONLY | O_CLOEXEC);
    text[fd < 0 ? 0 : read_all(fd, text, sizeof text - 1)] = 0;
    return strstr(text, "00000000000000000000000000000001 ") != NULL;
}

static void print_loopback(void) {
    size_t length, version_length;
    const char *previous = value_of("prevResult", &length), *version = value_of("cniVersion", &version_length);
    if (previous && *previous == '{') return (void)printf("%.*s\n", (int)length, previous);
    char wanted[16] = "\"0.1.0\"";
    if (version) snprintf(wanted, sizeof wanted, "%.*s", version_length < 15 ? (int)version_length : 15, version);
    wanted[strcspn(wanted, " \t\r\n")] = 0;
    if (*wanted != '"' || strlen(wanted) != 7 || !strstr(VERSIONS, wanted))
        fail(INCOMPATIBLE, "incompatible CNI versions", "plugin supports 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0 and 1.1.0");
    int ipv6 = has_ipv6_loopback();
    printf("{\"cniVersion\":%s,", wanted);
    if (strcmp(wanted, "\"0.3.0\"") < 0) {
        printf("\"ip4\":{\"ip\":\"127.0.0.1/8\"}%s,\"dns\":{}}\n", ipv6 ? ",\"ip6\":{\"ip\":\"::1/128\"}" : "");
        return;
    }
    int before1 = strcmp(wanted, "\"1.0.0\"") < 0;
    printf("\"interfaces\":[{\"name\":\"lo\",\"mac\":\"00:00:00:00:00:00\",\"sandbox\":");
    print_text(variable("CNI_NETNS"));
    printf("}],\"ips\":[{%s\"interface\":0,\"address\":\"127.0.0.1/8\"}", before1 ? "\"version\":\"4\"," : "");
    if (ipv6) printf(",{%s\"interface\":0,\"address\":\"::1/128\"}", before1 ? "\"version\":\"6\"," : "");
    puts(before1 ? "],\"dns\":{}}" : "]}");
}

static int loopback(const char *command, int netns) {
    struct ifreq link = {.ifr_name = "lo"};
    struct stat own, pod;
    if (!strcmp(command, "GC") || !strcmp(command, "STATUS") || (netns < 0 && !strcmp(command, "DEL"))) return 0;
    if (netns < 0) fail(ENVIRONMENT, "CNI_NETNS cannot be opened", variable("CNI_NETNS"));
    if (stat("/proc/self/ns/net", &own) || fstat(netns, &pod) || (own.st_dev == pod.st_dev && own.st_ino == pod.st_ino))
        fail(NETNS, "CNI_NETNS is the network namespace the plugin runs in", variable("CNI_NETNS"));
    if (setns(netns, CLONE_NEWNET)) fail(ENVIRONMENT, "CNI_NETNS cannot be entered", strerror(errno));
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &link)) fail(REFUSED, "The loopback interface cannot be read", strerror(errno));
    int up = link.ifr_flags & IFF_UP, wanted = strcmp(command, "DEL") ? IFF_UP : 0;
    if (!strcmp(command, "CHECK") && !up) fail(REFUSED, "The loopback interface is down", "");
    link.ifr_flags ^= up ^ wanted;
    if (up != wanted && ioctl(fd, SIOCSIFFLAGS, &link)) fail(REFUSED, "The loopback interface cannot be switched", strerror(errno));
    if (!strcmp(command, "ADD")) print_loopback();
    return 0;
}

int main(int argc, char **argv) {
    const char *command = variable("CNI_COMMAND"), *name = argc > 0 ? argv[0] : "";
    if (strrchr(name, '/')) name = strrchr(name, '/') + 1;
    if (!*command) {
        fputs("nodeplane-cni: hands CNI requests to the nodeplane agent of this node\nCNI protocol versions supported: " VERSIONS "\n", stderr);
        return 0;
    }
    if (!strcmp(command, "VERSION")) return puts("{\"cniVersion\":\"1.1.0\",\"supportedVersions\":[" VERSIONS "]}") < 0;
    size_t verb = 0;
    while (verb < sizeof verbs / sizeof *verbs && strcmp(command, verbs[verb])) verb++;
    if (verb == sizeof verbs / sizeof *verbs) fail(ENVIRONMENT, "CNI_COMMAND is none of ADD, DEL, CHECK, GC, STATUS and VERSION", command);
    signal(SIGPIPE, SIG_IGN);
    make_request();
    int netns = *variable("CNI_NETNS") ? open(variable("CNI_NETNS"), O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (!strcmp(name, "loopback")) return loopback(command, netns);
    int fd = connect_agent(command);
    int unread = fd >= 0 && ask(fd, netns);
    if (unread || !strcmp(command, "DEL")) delete_without_agent();
    static char details[512];
    snprintf(details, sizeof details, "Nobody answers at %s (the agent's --cni-socket): look whether its pod runs on this node, and at the end of its log", socket_path());
    fail(strcmp(command, "STATUS") ? TRY_AGAIN : UNAVAILABLE,
         "The nodeplane agent is not running on this node, or ended while it worked; try again later", details);
}
