/*
 * Makes UDP exchanges over loopback, each from a new port, then has the kernel forget all of them, and prints the microseconds of
 * processor time that took. What a listener to connection tracking costs the kernel is spent here: it writes messages where a flow
 * begins and ends.
 *
 * evidence-flows <exchanges>
 */
#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static void must(int ok, const char *what) {
  if (!ok) {
    perror(what);
    exit(1);
  }
}

static void forget_all(int netlink) {
  struct {
    struct nlmsghdr header;
    struct nfgenmsg body;
  } request = {
      .header = {.nlmsg_len = sizeof request,
                 .nlmsg_type = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
      .body = {.nfgen_family = AF_INET},
  };
  char answer[4096];
  must(send(netlink, &request, sizeof request, 0) == sizeof request, "send");
  must(recv(netlink, answer, sizeof answer, 0) > 0, "recv");
}

int main(int argc, char **argv) {
  int exchanges = argc > 1 ? atoi(argv[1]) : 1000;
  int netlink = socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
  must(netlink >= 0, "netlink");
  struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct sockaddr_in server = any, client;
  socklen_t length = sizeof server;
  int serving = socket(AF_INET, SOCK_DGRAM, 0);
  must(bind(serving, (struct sockaddr *)&any, sizeof any) == 0, "bind");
  must(getsockname(serving, (struct sockaddr *)&server, &length) == 0, "getsockname");
  char byte = 'x';
  for (int i = 0; i < exchanges; i++) {
    int asking = socket(AF_INET, SOCK_DGRAM, 0);
    length = sizeof client;
    must(sendto(asking, &byte, 1, 0, (struct sockaddr *)&server, sizeof server) == 1, "sendto");
    must(recvfrom(serving, &byte, 1, 0, (struct sockaddr *)&client, &length) == 1, "recvfrom");
    must(sendto(serving, &byte, 1, 0, (struct sockaddr *)&client, length) == 1, "sendto back");
    must(recv(asking, &byte, 1, 0) == 1, "recv");
    close(asking);
  }
  forget_all(netlink);
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  printf("%ld\n", (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000L + used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  return 0;
}
