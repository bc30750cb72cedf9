import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { attempt, type IpAddress, ipFromBytes } from '../../core/index.ts';

/** A TCP socket that listens in this network namespace. */
export interface Listener {
  readonly ip: IpAddress;
  readonly port: number;
  /** `process 4711 (kube-proxy)`; undefined: whose it is cannot be seen from here. */
  readonly process: string | undefined;
}

/** TCP_LISTEN of include/net/tcp_states.h, as /proc/net/tcp writes it. */
const LISTEN = '0A';

/**
 * The TCP sockets that listen, by /proc/net/tcp and tcp6 (proc_pid_net(5)): nobody is connected to, and no module is
 * loaded, as sock_diag would.
 *
 * @throws when neither can be read
 */
export function listListeners(): Listener[] {
  const lines = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((path, index) => {
    try {
      return readFileSync(path, 'utf8').split('\n').slice(1);
    } catch (error) {
      // Without IPv6 there is no second one.
      if (index === 0) throw error;
      return [];
    }
  });
  const found = lines.flatMap((line) => parseListener(line) ?? []);
  const owners = ownersOf(new Set(found.map(({ inode }) => inode)));
  return found.map(({ ip, port, inode }) => ({ ip, port, process: owners.get(inode) }));
}

/** Exported for tests. */
export function parseListener(line: string): { ip: IpAddress; port: number; inode: string } | undefined {
  const fields = line.trim().split(/\s+/);
  const [, hex, port] = /^((?:[0-9A-F]{8}){1,4}):([0-9A-F]{4})$/.exec(fields[1] ?? '') ?? [];
  const inode = fields[9];
  if (fields[3] !== LISTEN || hex === undefined || port === undefined || inode === undefined) return undefined;
  // Words of 32 bits, each in the machine's byte order.
  const bytes = Buffer.from(hex, 'hex').swap32();
  return { ip: ipFromBytes(bytes), port: Number.parseInt(port, 16), inode };
}

/** Of sockets by inode, as far as the processes can be seen and looked into. */
function ownersOf(wanted: ReadonlySet<string>): ReadonlyMap<string, string> {
  const owners = new Map<string, string>();
  if (wanted.size === 0) return owners;
  for (const pid of entries('/proc').filter((name) => /^\d+$/.test(name))) {
    for (const fd of entries(`/proc/${pid}/fd`)) {
      const inode = /^socket:\[(\d+)\]$/.exec(attempt(() => readlinkSync(`/proc/${pid}/fd/${fd}`)) ?? '')?.[1];
      if (inode !== undefined && wanted.has(inode) && !owners.has(inode)) owners.set(inode, describe(pid));
    }
  }
  return owners;
}

function describe(pid: string): string {
  try {
    return `process ${pid} (${programName(readFileSync(`/proc/${pid}/cmdline`, 'utf8'))})`;
  } catch {
    return `process ${pid}`;
  }
}

const INTERPRETER = /^(?:node|python|perl|ruby|bash|dash|sh)[\d.]*$/;

/**
 * The program of a command line, as /proc has it. Of a script its own name matters too, which comes behind the flags of the
 * interpreter. Exported for tests.
 */
export function programName(commandLine: string): string {
  const [program = '', ...rest] = commandLine.split('\0').filter(Boolean);
  const script = INTERPRETER.test(basename(program)) ? rest.find((word) => !word.startsWith('-')) : undefined;
  return [program, ...(script === undefined ? [] : [script])].map((word) => basename(word)).join(' ');
}

/** None of a process that has ended, or is somebody else's. */
function entries(folder: string): string[] {
  return attempt(() => readdirSync(folder)) ?? [];
}
