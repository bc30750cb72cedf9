import { closeSync, constants, openSync } from 'node:fs';
import { libc } from '../../sys/index.ts';

// What of BPF hangs where, by its number alone: what a program does is not asked.

/** BPF_PROG_QUERY of bpf(2). */
const PROG_QUERY = 16;
const QUERY_SIZE = 64;
/** Of `union bpf_attr` for it, offsets. */
const ATTACH_TYPE = 4;
const QUERY_FLAGS = 8;
const PROG_CNT = 24;
/** BPF_F_QUERY_EFFECTIVE: with those of the cgroups above. */
const EFFECTIVE = 1;

/** BPF_TCX_INGRESS, BPF_TCX_EGRESS (Linux 6.6). */
const TCX = [46, 47] as const;

/** BPF_CGROUP_*, as <linux/bpf.h> numbers them: what sees the packets of sockets, */
const OF_PACKETS = { inet_ingress: 0, inet_egress: 1 } as const;
/** and what sees the calls of those that connect and send, which it may refuse or lead elsewhere. */
const OF_CALLS = {
  ...{ inet_sock_create: 2, inet4_connect: 10, inet6_connect: 11 },
  ...{ udp4_sendmsg: 14, udp6_sendmsg: 15, udp4_recvmsg: 19, udp6_recvmsg: 20 },
} as const;

/** Names of the places, as `bpftool cgroup` has them. */
export interface CgroupPrograms {
  readonly ofPackets: readonly string[];
  readonly ofCalls: readonly string[];
}

/** Where cgroups of version 2 are: alone, or beside those of version 1. In a container these begin with its own. */
const CGROUPS = ['/sys/fs/cgroup', '/sys/fs/cgroup/unified'];

/** Whether a program of tcx is on a link of the calling thread's namespace. False where the kernel has none, or does not say. */
export function hasTcx(index: number): boolean {
  return TCX.some((type) => hasPrograms(index, type));
}

/**
 * What sees all sockets of this node: on the root of its cgroups or, from within a container, on that or on one of those above. Nothing
 * where the kernel has none, or does not say.
 */
export function cgroupPrograms(): CgroupPrograms {
  const found = CGROUPS.map(programsOf);
  return { ofPackets: found.flatMap(({ ofPackets }) => ofPackets), ofCalls: found.flatMap(({ ofCalls }) => ofCalls) };
}

function programsOf(path: string): CgroupPrograms {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  } catch {
    return { ofPackets: [], ofCalls: [] };
  }
  const among = (types: Readonly<Record<string, number>>) =>
    Object.keys(types).filter((name) => hasPrograms(fd, types[name]!, EFFECTIVE));
  try {
    return { ofPackets: among(OF_PACKETS), ofCalls: among(OF_CALLS) };
  } finally {
    closeSync(fd);
  }
}

/** @param target index of a link, or the descriptor of a cgroup */
function hasPrograms(target: number, attachType: number, flags = 0): boolean {
  const attributes = Buffer.alloc(QUERY_SIZE);
  attributes.writeUInt32LE(target, 0);
  attributes.writeUInt32LE(attachType, ATTACH_TYPE);
  attributes.writeUInt32LE(flags, QUERY_FLAGS);
  try {
    libc().bpf(PROG_QUERY, attributes);
  } catch {
    return false;
  }
  return attributes.readUInt32LE(PROG_CNT) > 0;
}
