import { describe, expect, it } from 'vitest';
import { numberedNode } from '../../../test/fakes/routes/node-objects.ts';
import { formatCidr, parseCidr, parseIp } from '../../core/index.ts';
import { FORMER_POD_CIDRS_ANNOTATION } from '../../kube/index.ts';
import { formerRangesWanted } from './former-ranges.ts';
import { RoutePlanner } from './planner.ts';

const FORMER = '10.64.99.0/24';
const annotations = { [FORMER_POD_CIDRS_ANNOTATION]: `${FORMER},fd00:10:244:99::/64,nonsense` };

function plannerOf(...podRanges: string[]) {
  const settings = {
    mode: 'host-gw',
    vni: 1,
    port: 8472,
    mtu: undefined,
    podRanges: podRanges.map(parseCidr),
  } as const;
  const planner = new RoutePlanner('IPv4', 'n1', settings);
  const address = parseIp('10.0.0.1');
  planner.setOwn({
    underlay: { index: 2, name: 'eth0', mtu: 1500, address, prefixes: [parseCidr('10.0.0.0/16')], routed: [] },
    ranges: [parseCidr('10.64.1.0/24')],
    mac: new Uint8Array(6),
    serviceRanges: [],
  });
  return { planner, rangesOf: (name: string) => planner.planOf(name)?.ranges.map(formatCidr) };
}

describe('ranges that a Node had before it was registered again', () => {
  it('are routed beside those it has, for as long as it says so', () => {
    const { planner, rangesOf } = plannerOf('10.64.0.0/10');
    planner.nodeChanged(numberedNode(2, { annotations }));
    expect(rangesOf('n2')).toEqual(['10.64.2.0/24', FORMER]);
    expect(planner.nodeChanged(numberedNode(2))).toEqual(['n2']);
    expect(rangesOf('n2')).toEqual(['10.64.2.0/24']);
  });

  it('are another Node’s as soon as it has them, and come back when it goes', () => {
    const { planner, rangesOf } = plannerOf('10.64.0.0/10');
    planner.nodeChanged(numberedNode(2, { annotations }));
    const other = numberedNode(3, { podCidrs: [FORMER] });
    expect(new Set(planner.nodeChanged(other))).toEqual(new Set(['n2', 'n3']));
    expect([rangesOf('n2'), rangesOf('n3')]).toEqual([['10.64.2.0/24'], [FORMER]]);
    expect(planner.objectionTo('n2')).toBeUndefined();
    expect(new Set(planner.nodeRemoved('n3'))).toEqual(new Set(['n2', 'n3']));
    expect(rangesOf('n2')).toEqual(['10.64.2.0/24', FORMER]);
    planner.nodeRemoved('n2');
    planner.nodeChanged(numberedNode(4, { annotations }));
    expect(rangesOf('n4')).toEqual(['10.64.4.0/24', FORMER]);
  });

  it('are not believed beyond the cluster’s pods, nor where those are not named', () => {
    for (const podRanges of [[], ['10.64.0.0/19'], ['10.64.99.0/25']]) {
      const { planner, rangesOf } = plannerOf(...podRanges);
      planner.nodeChanged(numberedNode(2, { annotations }));
      expect(rangesOf('n2')).toEqual(['10.64.2.0/24']);
    }
  });

  it('count once however often they are said', () => {
    const { planner, rangesOf } = plannerOf('10.64.0.0/10');
    const said = [FORMER, '10.64.99.7/24', FORMER].join();
    planner.nodeChanged(numberedNode(2, { annotations: { [FORMER_POD_CIDRS_ANNOTATION]: said } }));
    expect(rangesOf('n2')).toEqual(['10.64.2.0/24', FORMER]);
  });

  it('are never this node’s own, nor an address of a node', () => {
    const { planner, rangesOf } = plannerOf('10.0.0.0/8');
    const said = ['10.64.1.0/25', '10.0.0.0/24', '10.64.2.128/25'].join();
    planner.nodeChanged(numberedNode(2, { annotations: { [FORMER_POD_CIDRS_ANNOTATION]: said } }));
    expect(rangesOf('n2')).toEqual(['10.64.2.0/24']);
  });
});

it('a node names the ranges its pods have besides those of its Node object, and takes that back', () => {
  const node = numberedNode(1, { podCidrs: ['10.64.1.0/24', 'FD00:1::/64'] });
  const held = ['10.64.1.0/24', 'fd00:1::/64'];
  expect(formerRangesWanted(node, held)).toEqual({});
  expect(formerRangesWanted(node, [...held, FORMER])).toEqual({ [FORMER_POD_CIDRS_ANNOTATION]: FORMER });
  const marked = numberedNode(1, { podCidrs: ['10.64.1.0/24', 'FD00:1::/64'], annotations });
  expect(formerRangesWanted(marked, held)).toEqual({ [FORMER_POD_CIDRS_ANNOTATION]: undefined });
});
