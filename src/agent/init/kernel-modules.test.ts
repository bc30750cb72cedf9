import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Exec, useProcSysRoot } from '../../sys/index.ts';
import { loadModules } from './kernel-modules.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sysctls-'));
  mkdirSync(join(root, 'net'));
  useProcSysRoot(root);
});
afterEach(() => {
  useProcSysRoot('/proc/sys');
  rmSync(root, { recursive: true });
});

function appear(sysctl: string): void {
  mkdirSync(dirname(join(root, sysctl)), { recursive: true });
  writeFileSync(join(root, sysctl), '1\n');
}

/** A modprobe that makes these sysctls appear, by module; of others it says that they are not there. */
async function load(pods: boolean, modules: Readonly<Record<string, string>>) {
  const lines: Record<string, unknown>[] = [];
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const asked: string[] = [];
  const exec: Exec = async (program, args) => {
    asked.push([program, ...args].join(' '));
    const sysctl = modules[args[0]!];
    if (sysctl === undefined)
      return { status: 1, stdout: '', stderr: `modprobe: FATAL: Module ${args[0]} not found\n` };
    appear(sysctl);
    return { status: 0, stdout: '', stderr: '' };
  };
  await loadModules({ pods, exec, logger });
  return { asked, lines };
}

const ALL = { nf_conntrack: 'net/netfilter/nf_conntrack_max', br_netfilter: 'net/bridge/bridge-nf-call-iptables' };

it('loads what is not there yet, and the bridge’s only for pods', async () => {
  const proxy = await load(false, ALL);
  expect(proxy.asked).toEqual(['modprobe nf_conntrack']);
  const both = await load(true, ALL);
  expect(both.asked).toEqual(['modprobe br_netfilter']);
  expect(both.lines).toMatchObject([{ level: 30, module: 'br_netfilter', msg: 'Kernel module loaded' }]);
  expect((await load(true, ALL)).asked).toEqual([]);
});

it('says what follows from a module that cannot be loaded, with modprobe’s own words', async () => {
  const { lines } = await load(true, { nf_conntrack: ALL.nf_conntrack });
  expect(lines[1]).toMatchObject({
    level: 40,
    reason: 'modprobe: FATAL: Module br_netfilter not found',
    msg: expect.stringMatching(
      /^Kernel module br_netfilter is not there: Services may not work .*run "modprobe br_netfilter"/,
    ),
  });
});

it('does not believe a modprobe that only says it loaded something', async () => {
  const { lines } = await load(false, { nf_conntrack: 'net/elsewhere' });
  expect(lines).toMatchObject([{ level: 40, reason: 'there is no sysctl net.netfilter.nf_conntrack_max afterwards' }]);
});
