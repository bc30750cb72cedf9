import { constants } from 'node:fs';
import { libc } from '../../../sys/index.ts';

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

const O_CLOEXEC = 0o2000000;
/** Of <linux/exportfs.h>. */
const FILEID_KERNFS = 0xfe;

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
  return together(CGROUPS.map((path) => withDirectory(path, programsOf)));
}

/**
 * What sees sockets that were made in some cgroups, on those or on one of those above. Nothing where a cgroup is gone,
 * or cannot be opened: without CAP_DAC_READ_SEARCH, as in a container.
 *
 * @param cgroups their numbers, see `Listener.cgroup`
 */
export function programsAbove(cgroups: readonly (Uint8Array | undefined)[]): CgroupPrograms {
  const distinct = new Map(cgroups.flatMap((one) => (one ? [[Buffer.from(one).toString('hex'), one]] : [])));
  const lookBelow = (mount: number) => together([...distinct.values()].map((one) => openedBy(mount, one, programsOf)));
  return together(distinct.size > 0 ? CGROUPS.map((path) => withDirectory(path, lookBelow)) : []);
}

function together(found: readonly (CgroupPrograms | undefined)[]): CgroupPrograms {
  const all = (kind: keyof CgroupPrograms) => [...new Set(found.flatMap((one) => one?.[kind] ?? []))];
  return { ofPackets: all('ofPackets'), ofCalls: all('ofCalls') };
}

function programsOf(fd: number): CgroupPrograms {
  const among = (types: Readonly<Record<string, number>>) =>
    Object.keys(types).filter((name) => hasPrograms(fd, types[name]!, EFFECTIVE));
  return { ofPackets: among(OF_PACKETS), ofCalls: among(OF_CALLS) };
}

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | O_CLOEXEC;

function withDirectory<T>(path: string, use: (fd: number) => T): T | undefined {
  return withOpened(() => libc().open(path, DIRECTORY, 0), use);
}

/**
 * By its number, wherever it is: struct file_handle { __u32 handle_bytes; int handle_type; __u64 id; }
 * (kernfs_fh_to_dentry, fs/kernfs/mount.c).
 */
function openedBy<T>(mount: number, cgroup: Uint8Array, use: (fd: number) => T): T | undefined {
  const handle = Buffer.concat([Buffer.alloc(8), cgroup]);
  handle.writeUInt32LE(cgroup.length, 0);
  handle.writeUInt32LE(FILEID_KERNFS, 4);
  return withOpened(() => libc().openByHandle(mount, handle, DIRECTORY), use);
}

/** Undefined: it could not be opened. */
function withOpened<T>(open: () => number, use: (fd: number) => T): T | undefined {
  let fd: number;
  try {
    fd = open();
  } catch {
    return undefined;
  }
  try {
    return use(fd);
  } finally {
    libc().close(fd);
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
