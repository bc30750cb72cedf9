import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatIpPort, parseIp } from '../../core/index.ts';
import type { Endpoint } from './endpoint.ts';
import { selectEndpoints, type Wanted } from './select.ts';
import { explainSelection, isInUse } from './select-reasons.ts';

const PLACE = { nodeName: 'n1', zone: 'a' };
const CLUSTER: Wanted = { cluster: true, local: false };
const LOCAL: Wanted = { cluster: false, local: true };
const BOTH: Wanted = { cluster: true, local: true };

/**
 * Reads the notation of the acceptance cases: state r(eady), t(erminating but serving), x (terminating and no longer
 * serving) or u(nready), a number that names it, optionally the node in parentheses, optionally hints in brackets
 * (names beginning with n are nodes).
 */
function read(text: string): Endpoint[] {
  return text.split(' ').map((word) => {
    const [, state, number, node, hints] = /^([rtxu])(\d)(?:\((\w+)\))?(?:\[([\w,]*)\])?$/.exec(word)!;
    const names = hints ? hints.split(',') : [];
    const ip = parseIp(`10.0.0.${number}`);
    return {
      ip,
      port: 80,
      key: formatIpPort(ip, 80),
      isLocal: node === PLACE.nodeName,
      ready: state === 'r',
      serving: state === 'r' || state === 't',
      terminating: state === 't' || state === 'x',
      zoneHints: names.filter((name) => !name.startsWith('n')),
      nodeHints: names.filter((name) => name.startsWith('n')),
    };
  });
}

function names(endpoints: readonly Endpoint[]): string {
  return endpoints.map(({ ip, ready, serving }) => `${ready ? 'r' : serving ? 't' : 'u'}${ip.bytes[3]}`).join(' ');
}

describe('acceptance cases', () => {
  it.each<[string, string, Wanted, string, string, boolean, string?]>([
    ['zone hints complete', 'r1[a] r2[b] r3[a]', CLUSTER, 'r1 r3', '', true],
    ['one hint missing', 'r1[a] r2[] r3[b]', CLUSTER, 'r1 r2 r3', '', true],
    ['no endpoint for our zone', 'r1[b] r2[c]', CLUSTER, 'r1 r2', '', true],
    ['node has no zone label', 'r1[a] r2[b]', CLUSTER, 'r1 r2', '', true, ''],
    ['unready hinted ones ignored for the decision', 'u1[] r2[a] r3[b]', CLUSTER, 'r2', '', true],
    ['node hints complete incl. n1', 'r1[n1,a] r2[n2,a]', CLUSTER, 'r1', '', true],
    ['node hints complete without n1, zone ok', 'r1[n2,a] r2[n3,b]', CLUSTER, 'r1', '', true],
    ['one node hint missing, zone ok', 'r1[n1,a] r2[a] r3[n3,b]', CLUSTER, 'r1 r2', '', true],
    ['all terminating', 't1 t2 u3', CLUSTER, 't1 t2', '', true],
    ['all terminating, hints ignored', 't1[b] t2[a]', CLUSTER, 't1 t2', '', true],
    ['terminating ones leave to ready ones', 't1 r2', CLUSTER, 'r2', '', true],
    ['terminating ones that no longer serve', 'x1 t2 x3', CLUSTER, 't2', '', true],
    ['only such', 'x1(n1)', BOTH, '', '', false],
    ['nothing usable, Cluster', 'u1', CLUSTER, '', '', false],
    ['nothing usable, Local', 'u1(n1)', LOCAL, '', '', false],
    ['ITP Local, ClusterIP only', 'r1(n1) r2(n2)', LOCAL, '', 'r1', true],
    ['ITP Local, all remote', 'r2(n2)', LOCAL, '', '', true],
    ['ITP Local, all remote and terminating', 't2(n2)', LOCAL, '', '', true],
    ['ITP Local, local one terminating', 't1(n1) r2(n2)', LOCAL, '', 't1', true],
    ['ETP Local NodePort, hint mismatch', 'r1(n1)[b] r2(n2)[a]', BOTH, 'r2', 'r1', true],
    ['ETP Local but ClusterIP-only service', 'r1(n1) r2(n2)', CLUSTER, 'r1 r2', '', true],
  ])('%s', (_, endpoints, wanted, cluster, local, hasAny, zone = PLACE.zone) => {
    const selection = selectEndpoints(read(endpoints), wanted, { ...PLACE, zone });
    expect(names(selection.clusterEndpoints)).toBe(cluster);
    expect(names(selection.localEndpoints)).toBe(local);
    expect(selection.hasAnyEndpoints).toBe(hasAny);
  });

  it('finds nothing among nothing', () => {
    expect(selectEndpoints([], BOTH, PLACE)).toEqual({
      clusterEndpoints: [],
      localEndpoints: [],
      hasAnyEndpoints: false,
    });
  });
});

describe('reasons', () => {
  it.each<[string, Wanted, string, string]>([
    ['r1(n1) t2(n1) u3(n2)', BOTH, 'ready terminating not-ready', 'ready terminating not-local'],
    ['t1(n1) r2(n2)', BOTH, 'terminating ready', 'terminating-fallback not-local'],
    ['r1[a] r2[b]', CLUSTER, 'same-zone other-zone', 'policy-not-used policy-not-used'],
    ['r1(n1)[n1] r2[n2]', BOTH, 'same-node other-node', 'ready not-local'],
    ['t1 u2', CLUSTER, 'terminating-fallback not-ready', 'policy-not-used policy-not-used'],
    ['r1(n1)', LOCAL, 'policy-not-used', 'ready'],
  ])('of %s', (endpoints, wanted, cluster, local) => {
    const explained = explainSelection(read(endpoints), wanted, PLACE);
    expect(explained.map((one) => one.cluster).join(' ')).toBe(cluster);
    expect(explained.map((one) => one.local).join(' ')).toBe(local);
  });
});

describe('for any endpoints', () => {
  const endpoint = fc
    .record({
      last: fc.integer({ min: 0, max: 255 }),
      isLocal: fc.boolean(),
      ready: fc.boolean(),
      serving: fc.boolean(),
      terminating: fc.boolean(),
      zoneHints: fc.uniqueArray(fc.constantFrom('a', 'b'), { minLength: 0, maxLength: 2 }),
      nodeHints: fc.uniqueArray(fc.constantFrom('n1', 'n2'), { minLength: 0, maxLength: 2 }),
    })
    .map(({ last, ...rest }): Endpoint => {
      const ip = parseIp(`10.0.0.${last}`);
      return { ip, port: 80, key: formatIpPort(ip, 80), ...rest };
    });
  const endpoints = fc
    .uniqueArray(endpoint, { maxLength: 8, selector: ({ key }) => key })
    .map((list) => list.sort((a, b) => (a.key < b.key ? -1 : 1)));
  const wanted = fc.constantFrom(CLUSTER, LOCAL, BOTH);
  const place = fc.record({ nodeName: fc.constant('n1'), zone: fc.constantFrom('', 'a', 'b', 'c') });
  const given = [endpoints, wanted, place] as const;

  const isSorted = (list: readonly Endpoint[]) => list.every((one, i) => i === 0 || list[i - 1]!.key < one.key);

  it('uses only what is ready, or serving and terminating, and never both kinds at once', () => {
    fc.assert(
      fc.property(...given, (list, wants, where) => {
        const { clusterEndpoints, localEndpoints } = selectEndpoints(list, wants, where);
        for (const set of [clusterEndpoints, localEndpoints]) {
          expect(
            set.every((one) => one.ready) || set.every((one) => !one.ready && one.serving && one.terminating),
          ).toBe(true);
          expect(isSorted(set)).toBe(true);
        }
      }),
    );
  });

  it('has a cluster set exactly when something could serve', () => {
    fc.assert(
      fc.property(...given, (list, wants, where) => {
        const { clusterEndpoints, hasAnyEndpoints } = selectEndpoints(list, wants, where);
        expect(hasAnyEndpoints).toBe(list.some((one) => one.ready || (one.serving && one.terminating)));
        expect(clusterEndpoints.length > 0).toBe(wants.cluster && hasAnyEndpoints);
      }),
    );
  });

  it('keeps Local traffic on the node, and loses none of it to hints', () => {
    fc.assert(
      fc.property(...given, (list, wants, where) => {
        const { localEndpoints } = selectEndpoints(list, wants, where);
        expect(localEndpoints.every((one) => one.isLocal)).toBe(true);
        const ready = list.filter((one) => one.isLocal && one.ready);
        if (wants.local && ready.length > 0) expect(localEndpoints).toEqual(ready);
      }),
    );
  });

  it('gives reasons that agree with the choice', () => {
    fc.assert(
      fc.property(...given, (list, wants, where) => {
        const { clusterEndpoints, localEndpoints } = selectEndpoints(list, wants, where);
        const explained = explainSelection(list, wants, where);
        const used = (set: 'cluster' | 'local') =>
          explained.filter((one) => isInUse(one[set])).map((one) => one.endpoint);
        expect(explained.map((one) => one.endpoint)).toEqual(list);
        expect(used('cluster')).toEqual(clusterEndpoints);
        expect(used('local')).toEqual(localEndpoints);
      }),
    );
  });
});
