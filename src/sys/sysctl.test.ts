import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { listSysctls, procSysRoot, readSysctl, useProcSysRoot, writeSysctl } from './sysctl.ts';

const folders: string[] = [];
function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'sysctls-'));
  folders.push(made);
  return made;
}
afterEach(() => {
  useProcSysRoot('/proc/sys');
  for (const made of folders.splice(0)) rmSync(made, { recursive: true });
});

it('reads, writes and lists below the folder it was told', () => {
  const root = folder();
  mkdirSync(join(root, 'net/ipv4'), { recursive: true });
  writeFileSync(join(root, 'net/ipv4/ip_forward'), '0\n');
  useProcSysRoot(root);
  expect(procSysRoot()).toBe(root);
  expect(readSysctl('net/ipv4/ip_forward')).toBe('0');
  expect(writeSysctl('net/ipv4/ip_forward', 1)).toBe(true);
  expect(readFileSync(join(root, 'net/ipv4/ip_forward'), 'utf8')).toMatch(/^1/);
  expect(listSysctls('net/ipv4')).toEqual(['ip_forward']);
});

it('refuses a folder without network sysctls, and keeps the one it has', () => {
  const root = folder();
  expect(() => useProcSysRoot(root)).toThrow(
    `below "${root}" (--proc-sys-root): it has no folder net; mount the node's`,
  );
  expect(procSysRoot()).toBe('/proc/sys');
});
