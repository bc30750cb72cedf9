import { describe, expect, it } from 'vitest';
import { parseCidr, parseIp } from '../../core/index.ts';
import type { DatedStanding } from '../../routes/index.ts';
import type { HttpAnswer, HttpRequest } from '../http/http-listener.ts';
import type { RoutesReport } from './report.ts';
import { ReportPage } from './report-page.ts';

const reached = (changedAt = 0): DatedStanding => ({
  plan: {
    kind: 'tunnel',
    gateway: parseIp('10.244.2.0'),
    mac: Uint8Array.of(2, 0, 0, 0, 0, 1),
    remote: parseIp('10.0.0.2'),
    ranges: [parseCidr('10.244.2.0/24')],
  },
  reason: undefined,
  isRefused: false,
  changedAt,
});
const leftOut = (reason: string): DatedStanding => ({ plan: undefined, reason, isRefused: false, changedAt: 0 });

function world(standings: ReadonlyMap<string, DatedStanding>) {
  const page = new ReportPage({
    node: 'n1',
    mode: 'vxlan',
    families: () => [{ family: 'IPv4', standings: () => standings }],
  });
  const ask = (remoteAddress = '127.0.0.1'): Promise<HttpAnswer> =>
    Promise.resolve(page.pages['/routes']!({ remoteAddress } as HttpRequest));
  const report = async () => JSON.parse((await ask()).body) as RoutesReport;
  return { page, ask, report };
}

describe('/routes', () => {
  it('names the Nodes, the ways to them, and why some have none', async () => {
    const { report } = world(
      new Map([
        ['n2', reached(Date.UTC(2026, 10, 22))],
        ['n"3', leftOut('its "pod CIDR" overlaps ours')],
      ]),
    );
    const way = { mode: 'tunnel', gateway: '10.244.2.0', address: '10.0.0.2', podCidrs: ['10.244.2.0/24'] };
    const nodes = [
      { name: 'n"3', way: null, leftOut: 'its "pod CIDR" overlaps ours', lastChange: '1970-01-01T00:00:00.000Z' },
      { name: 'n2', way, leftOut: null, lastChange: '2026-11-22T00:00:00.000Z' },
    ];
    expect(await report()).toEqual({
      node: 'n1',
      mode: 'vxlan',
      families: [{ family: 'IPv4', problem: null, total: 2, nodes }],
    });
  });

  it('is shown to clients on this machine only', async () => {
    const { ask } = world(new Map());
    const statuses = await Promise.all(
      ['127.0.0.1', '::1', '::ffff:127.0.0.1', '10.0.0.9', '::ffff:10.0.0.9'].map(ask),
    );
    expect(statuses.map(({ status }) => status)).toEqual([200, 200, 200, 403, 403]);
  });

  it('says what keeps the routes from being right until a sync succeeds', async () => {
    const { page, report } = world(new Map());
    const problem = async () => (await report()).families[0]!.problem;
    page.observe({ kind: 'waiting', family: 'IPv4', reason: 'there is no Node object "n1" yet' });
    expect(await problem()).toBe('there is no Node object "n1" yet');
    page.observe({ kind: 'syncFailed', family: 'IPv4', error: new Error('no buffer'), retryInMs: 1000 });
    expect(await problem()).toBe('no buffer');
    const figures = { peers: { direct: 0, tunnel: 0, wireguard: 0 }, wanted: 0, inKernel: 0, leftOut: 0 };
    const own = { address: parseIp('192.0.2.1'), mac: new Uint8Array(6), ranges: [], mtu: 1500 };
    page.observe({ kind: 'synced', family: 'IPv4', full: true, seconds: 0, operations: 0, figures, own });
    expect(await problem()).toBeNull();
  });

  it('takes a family that the cluster does not use for no problem, as long as the other one is served', async () => {
    const families = (['IPv4', 'IPv6'] as const).map((family) => ({ family, standings: () => new Map() }));
    const page = new ReportPage({ node: 'n1', mode: 'vxlan', families: () => families });
    const problems = async () => {
      const answer = await page.pages['/routes']!({ remoteAddress: '127.0.0.1' } as HttpRequest);
      return (JSON.parse(String(answer.body)) as RoutesReport).families.map(({ problem }) => problem);
    };
    const reason = 'this node has no pod CIDR of IPv6';
    page.observe({ kind: 'waiting', family: 'IPv6', reason });
    expect(await problems()).toEqual([null, null]);
    expect(page.problem('IPv6')).toBe(reason);
    page.observe({ kind: 'syncFailed', family: 'IPv4', error: new Error('no buffer'), retryInMs: 1000 });
    expect(await problems()).toEqual(['no buffer', reason]);
  });

  it('tells 5,000 Nodes of a family, the left out among them, in slices, once for all who ask', async () => {
    const standings = new Map(Array.from({ length: 30_000 }, (_, i) => [`n${i}`, reached()]));
    standings.set('bad', leftOut('its pod CIDR overlaps ours'));
    const { ask } = world(standings);
    let turns = 0;
    let isDone = false;
    const count = () => {
      turns++;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    const [one, other] = await Promise.all([ask(), ask()]);
    isDone = true;
    expect(other).toBe(one);
    const [family] = (JSON.parse(one!.body) as RoutesReport).families;
    expect(family!.total).toBe(30_001);
    expect(family!.nodes).toHaveLength(5000);
    expect(family!.nodes[0]).toMatchObject({ name: 'bad', leftOut: 'its pod CIDR overlaps ours' });
    expect(turns).toBeGreaterThan(0);
  });
});
