import { describe, expect, it } from 'vitest';
import { type ErrorCode, NodeplaneError, parseAddressWithPrefix, parseCidr } from '../../core/index.ts';
import type { NftReader } from '../../netlink/nftables/index.ts';
import type { FeatureConfig } from '../config/feature-config.ts';
import { attachmentKey } from '../protocol/attachment-key.ts';
import type { ContainerId, InterfaceName, NetworkName } from '../protocol/environment.ts';
import { FEATURES, loadReassertion, type WantedAttachment } from './index.ts';
import { packetsOf } from './obstacles/packets.ts';
import { isOwnedBy } from './tables/owner-comment.ts';

const key = attachmentKey('net' as NetworkName, {
  containerId: 'c1' as ContainerId,
  ifname: 'eth0' as InterfaceName,
});
const NOTHING: FeatureConfig = {
  ipMasq: undefined,
  portMappings: undefined,
  bandwidth: undefined,
  firewall: undefined,
  macvlan: undefined,
};
const EVERYTHING: FeatureConfig = {
  ipMasq: { except: [] },
  portMappings: {
    mappings: [{ hostPort: 8080, containerPort: 80, protocol: 'tcp', hostIp: undefined }],
    snat: true,
    masqAll: false,
  },
  bandwidth: { ingress: { rate: 1e6, burst: 1e6 }, egress: undefined },
  firewall: { ingressPolicy: 'isolated' },
  macvlan: {
    request: '',
    master: 'default',
    allowedMasters: ['default'],
    mode: 'private',
    ipam: undefined,
    routes: [],
  },
};

function attachment(features: FeatureConfig, checksMac: boolean): WantedAttachment {
  return {
    key,
    features,
    reach: { link: 'cni0', isShared: true, checksMac },
    ips: ['10.244.1.7/24', 'fd00:1::7/64'].map((text) => ({ address: parseAddressWithPrefix(text) })),
    mac: Uint8Array.of(2, 0, 0, 0, 0, 1),
  };
}

const loaded = await Promise.all(FEATURES.map(async (entry) => ({ entry, feature: await entry.load() })));

it('features have names of their own', () => {
  expect(new Set(FEATURES.map(({ name }) => name)).size).toBe(FEATURES.length);
  expect(loaded.map(({ feature }) => feature.name)).toEqual(FEATURES.map(({ name }) => name));
});

it('an attachment has those it asks for', () => {
  const namesOf = (wanted: WantedAttachment) =>
    FEATURES.filter((entry) => entry.wanted(wanted)).map(({ name }) => name);
  expect(namesOf(attachment(NOTHING, false))).toEqual([]);
  const made = FEATURES.map(({ name }) => name).filter((name) => name !== 'reference-plugins');
  expect(namesOf(attachment(EVERYTHING, true))).toEqual(made);
});

describe.each(loaded)('$entry.name', ({ feature }) => {
  const { elements = [], chains = [], admissions = [] } = feature.wantedIn(attachment(EVERYTHING, true));

  it('wants the same each time', () => {
    expect(feature.wantedIn(attachment(EVERYTHING, true))).toEqual(feature.wantedIn(attachment(EVERYTHING, true)));
  });

  it('wants elements and chains in its own table alone', () => {
    const sets = feature.layout?.sets.map(({ name }) => name) ?? [];
    const { family, name: table } = feature.layout?.table ?? {};
    expect(elements.filter(({ set }) => !sets.includes(set))).toEqual([]);
    const places = [...elements, ...chains.map(({ chain }) => chain)];
    expect(places.filter((object) => object.family !== family || object.table !== table)).toEqual([]);
  });

  it('names the attachment in each element, and the network in each rule', () => {
    const comments = elements.flatMap((set) => set.elements.map(({ comment }) => comment));
    expect(comments.filter((comment) => !isOwnedBy(comment, key))).toEqual([]);
    expect(admissions.filter(({ comment }) => !comment.endsWith(' net'))).toEqual([]);
  });
});

it('does not say what may drop packets of pods of a ruleset that does not hold still', async () => {
  const { obstaclesOf } = await loadReassertion();
  const passing = packetsOf(parseCidr('10.244.1.0/24'), { link: 'cni0', isShared: true });
  const failing = (code: ErrorCode): NftReader => {
    const fail = () => {
      throw new NodeplaneError(code, 'it changed');
    };
    return { listTables: fail, listChains: fail, getChain: fail, listRules: fail } as unknown as NftReader;
  };
  expect(obstaclesOf(failing('ERR_NETLINK_DUMP_INTERRUPTED'), { passing })).toBeUndefined();
  expect(() => obstaclesOf(failing('ERR_NETLINK_DECODE'), { passing })).toThrow('it changed');
});
