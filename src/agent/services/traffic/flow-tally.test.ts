import { beforeEach, describe, expect, it } from 'vitest';
import { samplePort } from '../../../../test/samples/sample-plan.ts';
import { parseIp } from '../../../core/index.ts';
import type { TranslatedFlow } from '../../../netlink/conntrack/index.ts';
import { FlowTally } from './flow-tally.ts';

const WEB = { name: 'shop/web:http', clusterIp: '10.96.0.10', port: 80, nodePort: 30080, local: ['10.244.1.5:8080'] };

/** One packet of 100 bytes each way for each unit. */
function flow(id: number, units: number, ip = WEB.clusterIp, port = WEB.port): TranslatedFlow {
  const carried = { packetsIn: units, packetsOut: units, bytesIn: 100 * units, bytesOut: 100 * units };
  return { family: 'IPv4', protocol: 6, destination: parseIp(ip).bytes, port, id, ...carried };
}

let tally: FlowTally;
/** Lists the table, while which something may happen. */
function read(open: readonly TranslatedFlow[], meanwhile = () => {}): void {
  const reading = tally.beginReading();
  meanwhile();
  reading.seal();
  for (const one of open) reading.add(one);
  reading.finish();
}
const counted = () =>
  [...tally.readings()].map(({ port, counts, open }) => [port.name, counts.connections, open, counts.packetsIn]);

beforeEach(() => {
  tally = new FlowTally();
  tally.note({ upserted: [samplePort(WEB)], removed: [] });
});

describe('what is carried', () => {
  it.each(['before it is listed', 'after'])('is not lost with a reading that is given up %s', (when) => {
    read([flow(1, 50)]);
    const reading = tally.beginReading();
    tally.ended(flow(1, 60));
    if (when === 'after') reading.seal();
    reading.giveUp();
    tally.ended(flow(2, 3));
    read([]);
    expect(counted()).toEqual([[WEB.name, 0, 0, 13]]);
  });

  it('begins with the first reading, and goes on when flows end', () => {
    read([flow(1, 50)]);
    expect(counted()).toEqual([[WEB.name, 0, 1, 0]]);
    tally.begun(flow(2, 1));
    read([flow(1, 53), flow(2, 4)]);
    expect(counted()).toEqual([[WEB.name, 1, 2, 7]]);
    tally.ended(flow(1, 60));
    read([flow(2, 4)]);
    expect(counted()).toEqual([[WEB.name, 1, 1, 14]]);
    tally.ended(flow(2, 4));
    read([]);
    expect(counted()).toEqual([[WEB.name, 1, 0, 14]]);
  });

  it('is counted once when a flow ends while the table is listed, whether it is in the listing or not', () => {
    read([]);
    for (const id of [1, 2]) tally.begun(flow(id, 1));
    read([flow(1, 3)], () => {
      for (const id of [1, 2]) tally.ended(flow(id, 3));
    });
    expect(counted()).toEqual([[WEB.name, 2, 0, 6]]);
    read([]);
    expect(counted()).toEqual([[WEB.name, 2, 0, 6]]);
  });

  it('does not fall when flows end of which nobody tells', () => {
    read([]);
    read([flow(1, 9)]);
    read([]);
    expect(counted()).toEqual([[WEB.name, 0, 0, 9]]);
    read([flow(2, 5)]);
    expect(counted()).toEqual([[WEB.name, 0, 1, 14]]);
  });
});

it('knows a port by its addresses and its NodePort, at the protocol', () => {
  read([]);
  tally.begun(flow(1, 1));
  tally.begun(flow(2, 1, '192.168.50.1', WEB.nodePort));
  tally.begun({ ...flow(3, 1), protocol: 17 });
  tally.begun(flow(4, 1, '192.168.50.1', WEB.port));
  tally.begun({ ...flow(5, 1), family: 'IPv6', destination: parseIp('fd00::1').bytes });
  expect(counted()).toEqual([[WEB.name, 2, 0, 0]]);
});

describe('a port that is removed', () => {
  const port = samplePort(WEB);
  beforeEach(() => {
    read([]);
    tally.begun(flow(1, 1));
    tally.note({ upserted: [], removed: [port] });
  });

  it('counts until its last flow has ended', () => {
    read([flow(1, 1)]);
    tally.ended(flow(1, 3));
    expect(counted()).toEqual([[WEB.name, 1, 1, 1]]);
    read([]);
    expect(counted()).toEqual([]);
    tally.begun(flow(2, 1));
    tally.note({ upserted: [port], removed: [] });
    expect(counted()).toEqual([[WEB.name, 0, 0, 0]]);
  });

  it('goes on counting when it is there again before', () => {
    tally.note({ upserted: [port], removed: [] });
    read([]);
    tally.begun(flow(2, 1));
    expect(counted()).toEqual([[WEB.name, 2, 0, 0]]);
  });

  it('leaves its address to who gets it', () => {
    const next = samplePort({ ...WEB, name: 'shop/next:http' });
    tally.note({ upserted: [next], removed: [] });
    tally.begun(flow(2, 1));
    expect(counted()).toEqual([
      [WEB.name, 1, 0, 0],
      [next.name, 1, 0, 0],
    ]);
    read([]);
    tally.begun(flow(3, 1));
    expect(counted()).toEqual([[next.name, 2, 0, 0]]);
  });
});
