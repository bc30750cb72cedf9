import { constants } from 'node:os';
import { describe, expect, it } from 'vitest';
import { KernelError } from '../../../core/index.ts';
import { applyConntrackSettings, type ConntrackKernel, wantedMax, wantedSysctls } from './sysctls.ts';

type Errno = keyof typeof constants.errno;

/** A kernel with these values; writing the ones in `refuse` fails, reading what it does not have is ENOENT. */
function fakeKernel(values: Record<string, number>, refuse: Record<string, Errno> = {}) {
  const fail = (object: string, name: Errno): never => {
    throw new KernelError('ERR_SYSCALL', { operation: 'write', object, errno: constants.errno[name] });
  };
  const read = (name: string) => values[name] ?? fail(name, 'ENOENT');
  const write = (name: string, value: number) => {
    if (refuse[name]) fail(name, refuse[name]);
    values[name] = value;
  };
  const kernel: ConntrackKernel = {
    read: (name) => String(read(name)),
    write,
  };
  return { kernel, values };
}

describe('wantedMax', () => {
  it.each([
    [{ maxPerCore: 32_768, min: 131_072 }, 2, 131_072],
    [{ maxPerCore: 32_768, min: 131_072 }, 8, 262_144],
    [{ maxPerCore: 32_768, min: 131_072 }, 64, 1_048_576],
    [{ maxPerCore: 32_768, min: 2_000_000 }, 64, 2_000_000],
    [{ maxPerCore: 32_768 }, 1, 32_768],
    [{ maxPerCore: 0, min: 131_072 }, 2, undefined],
    [{ min: 131_072 }, 2, undefined],
  ])('of %o on %i CPUs is %s', (settings, cpus, max) => {
    expect(wantedMax(settings, cpus)).toBe(max);
  });
});

it('wantedSysctls: what is 0 or missing is left alone, times are whole seconds', () => {
  expect([...wantedSysctls({ tcpEstablishedTimeoutMs: 0, tcpBeLiberal: false })]).toEqual([]);
  const all = { tcpEstablishedTimeoutMs: 86_400_000, tcpCloseWaitTimeoutMs: 3_600_000, tcpBeLiberal: true };
  expect(Object.fromEntries(wantedSysctls({ ...all, udpTimeoutMs: 30_900, udpStreamTimeoutMs: 200 }))).toEqual({
    nf_conntrack_tcp_timeout_established: 86_400,
    nf_conntrack_tcp_timeout_close_wait: 3600,
    nf_conntrack_udp_timeout: 30,
    nf_conntrack_udp_timeout_stream: 1,
    nf_conntrack_tcp_be_liberal: 1,
  });
});

describe('applyConntrackSettings', () => {
  it('writes what differs and nothing else', () => {
    const { kernel, values } = fakeKernel({
      nf_conntrack_max: 65_536,
      nf_conntrack_buckets: 16_384,
      nf_conntrack_udp_timeout: 30,
      nf_conntrack_tcp_be_liberal: 0,
    });
    const settings = { maxPerCore: 65_536, udpTimeoutMs: 30_000, tcpBeLiberal: true };
    expect(applyConntrackSettings(settings, kernel, 2)).toEqual({
      written: ['nf_conntrack_max=131072', 'nf_conntrack_buckets=32768', 'nf_conntrack_tcp_be_liberal=1'],
      warnings: [],
    });
    expect(values).toEqual({
      nf_conntrack_max: 131_072,
      nf_conntrack_buckets: 32_768,
      nf_conntrack_udp_timeout: 30,
      nf_conntrack_tcp_be_liberal: 1,
    });
    expect(applyConntrackSettings(settings, kernel, 2)).toEqual({ written: [], warnings: [] });
  });

  it('makes a table smaller only when told', () => {
    const { kernel, values } = fakeKernel({ nf_conntrack_max: 500_000, nf_conntrack_buckets: 500_000 });
    expect(applyConntrackSettings({ maxPerCore: 1000 }, kernel, 2).written).toEqual([]);
    expect(applyConntrackSettings({ maxPerCore: 1000, mayLowerMax: true }, kernel, 2).written).toEqual([
      'nf_conntrack_max=2000',
    ]);
    expect(values).toEqual({ nf_conntrack_max: 2000, nf_conntrack_buckets: 500_000 });
  });

  it('says in one sentence that nf_conntrack is missing', () => {
    const { kernel } = fakeKernel({});
    expect(applyConntrackSettings({ maxPerCore: 1000, tcpBeLiberal: true }, kernel, 2)).toEqual({
      written: [],
      warnings: [
        'Cannot set "nf_conntrack_max=2000", "nf_conntrack_buckets=500", "nf_conntrack_tcp_be_liberal=1": no such file or directory ' +
          '(ENOENT); nf_conntrack is not loaded: run "modprobe nf_conntrack" on the host and restart',
      ],
    });
  });

  it.each<[Errno]>([['EROFS'], ['EACCES'], ['EPERM']])('goes on after %s and says what to do', (errno) => {
    const { kernel } = fakeKernel({ nf_conntrack_max: 1, nf_conntrack_udp_timeout: 1 }, { nf_conntrack_max: errno });
    const { written, warnings } = applyConntrackSettings({ maxPerCore: 4, udpTimeoutMs: 5000 }, kernel, 1);
    expect(written).toEqual(['nf_conntrack_udp_timeout=5']);
    expect(warnings[0]).toMatch(
      new RegExp(
        `^Cannot set "nf_conntrack_max=4": .* \\(${errno}\\); this process may not write them: run it with --init-only`,
      ),
    );
  });
});
