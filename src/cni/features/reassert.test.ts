import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FakeNftables } from '../../../test/fakes/fake-nftables.ts';
import { isNotFound, KernelError, parseAddressWithPrefix } from '../../core/index.ts';
import { expressionKey, type NftChange, type NftElements } from '../../netlink/nftables/index.ts';
import { attachmentKey } from '../protocol/attachment-key.ts';
import type { ContainerId, InterfaceName, NetworkName } from '../protocol/environment.ts';
import { type DesiredRules, loadReassertion } from './index.ts';
import { forwardChain, OUR_FORWARD } from './tables/forward-rules.ts';
import { FRAME_LAYOUT, FRAME_TABLE } from './tables/frame-table.ts';
import { isStale } from './tables/owner-comment.ts';
import { deletePodElements, hasTable, listPodElements, retried } from './tables/pod-ruleset.ts';
import { POD_SETS, POD_TABLE, podSet } from './tables/pod-table.ts';
import type { WantedAttachment } from './wanted-attachment.ts';

const { featuresOf, obstaclesOf, reassertFeatures } = await loadReassertion();

const SETS = [...POD_SETS, ...FRAME_LAYOUT.sets];

/** The nth pod of a network, with one port of its own. */
function attachment(n: number, { network = 'net', ipMasq = true, firewall = false } = {}): WantedAttachment {
  return {
    key: attachmentKey(network as NetworkName, {
      containerId: `c${n}` as ContainerId,
      ifname: 'eth0' as InterfaceName,
    }),
    reach: { link: 'cni0', isShared: true, checksMac: true },
    features: {
      ipMasq: ipMasq ? { except: [] } : undefined,
      bandwidth: undefined,
      macvlan: undefined,
      firewall: firewall ? { ingressPolicy: 'open' } : undefined,
      portMappings: {
        mappings: [{ hostPort: 8000 + n, containerPort: 80, protocol: 'tcp', hostIp: undefined }],
        snat: true,
        masqAll: false,
      },
    },
    mac: Uint8Array.of(2, 0, 0, 0, 0, n),
    ips: [`10.244.${n % 3}.${10 + n}/24`, `fd00::${n % 3}:${10 + n}/112`].map((text) => ({
      address: parseAddressWithPrefix(text),
    })),
  };
}

function wanted(count: number): DesiredRules {
  return featuresOf(Array.from({ length: count }, (_, n) => attachment(n)));
}

function withAttachments(count: number): FakeNftables {
  const ruleset = new FakeNftables();
  reassertFeatures(ruleset, wanted(count));
  return ruleset;
}

function elementsIn(ruleset: FakeNftables): NftElements[] {
  return listPodElements(ruleset, SETS);
}

/** The tables as `nft` prints them, then rules by chain and elements by set to the byte, in an order of their own. */
function textOf(ruleset: FakeNftables): string {
  const rules = [POD_TABLE, FRAME_TABLE]
    .flatMap((table) => ruleset.listRules(table))
    .map(({ chain, expressions }) => `${chain}: ${expressions.map(expressionKey)}`);
  const elements = elementsIn(ruleset).flatMap((set) =>
    set.elements.map(({ key, keyEnd, comment }) => `${set.set}: ${[key, keyEnd, comment].map(String)}`),
  );
  return [String(ruleset), ...rules.sort(), ...elements.sort()].join('\n');
}

/** `iptables -P FORWARD DROP` */
function addForward(ruleset: FakeNftables): void {
  const base = { type: 'filter', hook: 'forward', priority: 0, policy: 'drop' } as const;
  ruleset.commitAsOther(
    { operation: 'add', object: { kind: 'table', family: 'ip', name: 'filter' } },
    { operation: 'add', object: { kind: 'chain', family: 'ip', table: 'filter', name: 'FORWARD', base } },
  );
}

describe('reassertFeatures', () => {
  it('makes all that is wanted in one transaction, and nothing the second time', () => {
    const ruleset = withAttachments(3);
    expect(ruleset.commits).toHaveLength(1);
    const again = reassertFeatures(ruleset, featuresOf([0, 1, 2].map((n) => attachment(n))));
    expect(again).toEqual({
      structureRepaired: false,
      elementsAdded: 0,
      admissionRepaired: false,
      jump: 'in place',
      conflicts: [],
    });
    expect(ruleset.commits).toHaveLength(1);
  });

  it('makes once what is named twice', () => {
    const ruleset = new FakeNftables();
    const { elements, chains, admissions, passing } = featuresOf([attachment(0, { firewall: true })]);
    const named = {
      passing,
      elements: [...elements, ...elements],
      chains: [...chains, ...chains],
      admissions: [...admissions, ...admissions],
    };
    expect(reassertFeatures(ruleset, named).elementsAdded).toBe(elements.flatMap((set) => set.elements).length);
  });

  it('brings nothing back for a pod whose link a DEL has just taken', () => {
    const ruleset = withAttachments(2);
    const links = new Set([attachment(0).key.hostName, attachment(2).key.hostName]);
    const rules = featuresOf([0, 1, 2, 3].map((n) => attachment(n)));
    reassertFeatures(ruleset, rules, () => links);
    const text = textOf(ruleset);
    expect([0, 1, 2, 3].map((n) => text.includes(attachment(n).key.hostName))).toEqual([true, true, true, false]);
  });

  it('does nothing for nobody', () => {
    expect(withAttachments(0).commits).toEqual([]);
  });

  it('brings back whatever was flushed, and only that', () => {
    const flushes: NftChange[] = [
      ...SETS.map((object): NftChange => ({ operation: 'flush', object })),
      ...['host-ports', 'prerouting', 'output', 'postrouting', 'localnet', 'masquerade-10.244.1.0/24'].map(
        (name): NftChange => ({
          operation: 'flush',
          object: { kind: 'chain', family: 'inet', table: POD_TABLE.name, name },
        }),
      ),
      { operation: 'flush', object: FRAME_TABLE },
    ];
    fc.assert(
      fc.property(fc.subarray(flushes), (chosen) => {
        const ruleset = withAttachments(2);
        const before = textOf(ruleset);
        ruleset.commitAsOther(...chosen);
        const isDamaged = textOf(ruleset) !== before;
        reassertFeatures(ruleset, wanted(2));
        expect(textOf(ruleset)).toBe(before);
        expect(ruleset.commits.length).toBe(isDamaged ? 2 : 1);
      }),
      { numRuns: 15 },
    );
  });

  it('brings all back after a flush of the ruleset', () => {
    const ruleset = withAttachments(4);
    const before = textOf(ruleset);
    ruleset.flushRuleset();
    expect(hasTable(ruleset, POD_TABLE)).toBe(false);
    reassertFeatures(ruleset, wanted(4));
    expect(textOf(ruleset)).toBe(before);
  });

  it('leaves a port to whoever has it by now, and says so', () => {
    const ruleset = withAttachments(1);
    const wanted = attachment(0);
    const rival = { ...wanted, reach: { ...wanted.reach, checksMac: false }, key: attachment(7).key };
    const { conflicts, elementsAdded } = reassertFeatures(ruleset, featuresOf([rival]));
    expect(elementsAdded).toBe(0);
    expect(conflicts).toContain(
      'An element of set "ports-ipv4" of attachment "net/c7/eth0" is held by attachment "net/c0/eth0"',
    );
  });

  it('puts the rules of a subnet into FORWARD once, however many pods it has', () => {
    const ruleset = new FakeNftables();
    addForward(ruleset);
    const pods = [0, 3, 6].map((n) => attachment(n, { firewall: true }));
    expect(reassertFeatures(ruleset, featuresOf(pods)).admissionRepaired).toBe(true);
    expect(reassertFeatures(ruleset, featuresOf(pods)).admissionRepaired).toBe(false);
    expect(ruleset.listRules(forwardChain('IPv4', OUR_FORWARD)).map(({ comment }) => comment)).toEqual([
      'nodeplane-cni net',
      'nodeplane-cni net',
    ]);
  });

  it('makes no rules where there is no FORWARD', () => {
    const ruleset = new FakeNftables();
    expect(reassertFeatures(ruleset, featuresOf([attachment(0, { firewall: true })])).admissionRepaired).toBe(false);
    expect(ruleset.listTables().map(({ family }) => family)).toEqual(['inet', 'bridge']);
  });
});

describe('deletePodElements', () => {
  it('removes what belongs to one network and no valid attachment, and returns it', () => {
    const ruleset = withAttachments(3);
    reassertFeatures(ruleset, featuresOf([attachment(9, { network: 'other' })]));
    const valid = [attachment(1).key];
    const gone = deletePodElements(ruleset, SETS, (comment) => isStale(comment, 'net', valid));
    expect(gone.flatMap(({ elements }) => elements)).toHaveLength(18);
    const left = elementsIn(ruleset).flatMap(({ elements }) => elements.map(({ comment }) => comment));
    expect(new Set(left)).toEqual(
      new Set([1, 9].map((n) => expect.stringContaining(n === 9 ? 'other/c9/eth0' : 'net/c1/eth0'))),
    );
  });

  it('is done when there is no table', () => {
    const ruleset = new FakeNftables();
    expect(deletePodElements(ruleset, SETS, () => true)).toEqual([]);
    expect(ruleset.commits).toEqual([]);
  });

  it('reads again when somebody else was faster', () => {
    const ruleset = withAttachments(2);
    const first = attachment(0).key.hostName;
    let interfered = false;
    ruleset.refuse = () => {
      if (interfered) return undefined;
      interfered = true;
      ruleset.commitAsOther({ operation: 'flush', object: podSet('ports', 'IPv4') });
      return undefined;
    };
    deletePodElements(ruleset, SETS, (comment) => comment?.startsWith(first) ?? false);
    const left = elementsIn(ruleset).flatMap(({ elements }) => elements.map(({ comment }) => comment));
    expect(left.some((comment) => comment?.startsWith(first))).toBe(false);
  });
});

describe('retried', () => {
  it('gives up in the end, and at once for what nothing explains', () => {
    const notFound = new KernelError('ERR_NETLINK_ACK', { operation: 'x', errno: 2 });
    let runs = 0;
    const fail = (error: Error) => () => {
      runs++;
      throw error;
    };
    expect(() => retried(isNotFound, fail(notFound))).toThrow(notFound);
    expect(runs).toBe(5);
    expect(() => retried(isNotFound, fail(new Error('other')))).toThrow('other');
    expect(runs).toBe(6);
  });
});

it('tells of tables that drop what pods have alone: one of IPv6 closes no pod of IPv4', () => {
  const ruleset = new FakeNftables();
  const base = { type: 'filter', hook: 'forward', priority: 0, policy: 'drop' } as const;
  for (const family of ['ip', 'ip6'] as const) {
    const chain = { kind: 'chain', family, table: 'site', name: 'passing', base } as const;
    ruleset.commit([
      { operation: 'add', object: { kind: 'table', family, name: 'site' } },
      { operation: 'add', object: chain },
    ]);
  }
  const { ips, ...pod } = attachment(1, { firewall: true });
  const told = (count: number) => obstaclesOf(ruleset, featuresOf([{ ...pod, ips: ips.slice(0, count) }]));
  expect(told(1)).toEqual([expect.stringContaining('"ip site"')]);
  expect(told(2)).toEqual([expect.stringContaining('"ip site"'), expect.stringContaining('"ip6 site"')]);
  expect(told(0)).toEqual([]);
});
