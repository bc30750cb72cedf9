import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A change that the kernel was asked for by netlink and refused. */
export interface RefusedChange {
  /** The type of the refused message, as its number: what `NLMSG_ERROR` repeats of the request. */
  readonly type: number;
  /** Positive. */
  readonly errno: number;
}

/** By subsystem of nfnetlink the messages that ask: those of ctnetlink, ipset, nfacct and nf_tables. */
const QUESTIONS: Readonly<Record<number, readonly number[]>> = {
  // IPCTNL_MSG_CT_GET
  1: [1],
  // IPSET_CMD_PROTOCOL, LIST, SAVE, TEST, HEADER, TYPE, GET_BYNAME, GET_BYINDEX
  6: [1, 7, 8, 11, 12, 13, 14, 15],
  // NFNL_MSG_ACCT_GET
  7: [1],
  // NFT_MSG_GETTABLE, GETCHAIN, GETRULE, GETSET, GETSETELEM, GETGEN, GETOBJ, GETFLOWTABLE
  10: [1, 4, 7, 10, 13, 16, 19, 23],
};

/** RTM_DELNEIGH of <linux/rtnetlink.h>. */
const RTM_DELNEIGH = 29;
const ENOENT = 2;
/** NFNL_MSG_BATCH_BEGIN of <linux/netfilter/nfnetlink.h>. */
const NFNL_MSG_BATCH_BEGIN = 16;
const ERESTART = 85;

/**
 * The changes that the kernel refused, in what a program printed that ran with NODEPLANE_NETLINK_DEBUG=1 (on standard
 * error). A question that is answered by an error (RTM_GETLINK: there is none of that name) is no change, and costs nothing;
 * a refused transaction of nf_tables is taken back by the kernel, which waits for all of its readers (RCU) then. Nor does
 * the removal of a neighbour that is not there count, which goes along with other changes and costs as little, nor a transaction
 * that came after another program's, and is turned away at its beginning (ERESTART), before anything is done.
 */
export function refusedChanges(output: string): RefusedChange[] {
  return [...output.matchAll(/^netlink < NLMSG_ERROR flags \S+ seq \d+ ([0-9a-f]+)$/gm)]
    .map(([, hex]) => Buffer.from(hex!, 'hex'))
    .map((payload) => ({ errno: -payload.readInt32LE(0), type: payload.readUInt16LE(8) }))
    .filter(({ errno, type }) => errno !== 0 && !isQuestion(type))
    .filter(({ errno, type }) => !(type === RTM_DELNEIGH && errno === ENOENT))
    .filter(({ errno, type }) => !(type === NFNL_MSG_BATCH_BEGIN && errno === ERESTART));
}

/** In rtnetlink the last two bits of a type tell NEW, DEL, GET and SET. The subsystems of nfnetlink number theirs. */
function isQuestion(type: number): boolean {
  const [subsystem, message] = [type >> 8, type & 0xff];
  return subsystem === 0 ? (type & 3) === 2 : (QUESTIONS[subsystem]?.includes(message) ?? false);
}

const WATCHED_PROGRAMS = ['iptables', 'ip6tables'].flatMap((name) =>
  ['nft', 'legacy'].flatMap((variant) => ['', '-save', '-restore'].map((what) => `${name}-${variant}${what}`)),
);

/** Notes which of the programs of iptables fail. */
export interface WatchedPrograms {
  /** What has to be the first in PATH. */
  readonly directory: string;
  /** The command lines of those that failed so far, each with its exit status. */
  failed(): string[];
}

/** Puts a program before each of iptables' ones, which runs it. */
export function watchPrograms(folder: string): WatchedPrograms {
  const [directory, note] = [join(folder, 'watched-programs'), join(folder, 'failed-programs')];
  mkdirSync(directory, { recursive: true });
  for (const name of WATCHED_PROGRAMS) {
    const script = `#!/bin/sh
PATH=\${PATH#*:}
${name} "$@"
status=$?
[ $status = 0 ] || echo "${name} $*: $status" >> ${note}
exit $status
`;
    writeFileSync(join(directory, name), script, { mode: 0o755 });
  }
  return { directory, failed: () => (existsSync(note) ? readFileSync(note, 'utf8').trim().split('\n') : []) };
}
