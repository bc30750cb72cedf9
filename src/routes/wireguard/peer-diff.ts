import {
  addressBits,
  type Cidr,
  type Drift,
  formatCidr,
  formatIpPort,
  type IpFamily,
  ipEquals,
  type Steps,
} from '../../core/index.ts';
import { type Endpoint, formatKey, type PeerChange, type WireguardPeer } from '../../netlink/wireguard/index.ts';
import type { PeerPlan } from '../plan/planner.ts';
import type { DeviceSettings } from './wireguard-kernel.ts';

/** A node as the device is to know it. */
export interface WantedPeer {
  readonly publicKey: Uint8Array;
  readonly endpoint: Endpoint;
  /** Where packets for it go to, and those from it may come from: its pods of both families, and its own addresses. */
  readonly allowedIps: readonly Cidr[];
  /** 0 for none. */
  readonly keepaliveSeconds: number;
}

/** What the device knows of a node. */
export type PresentPeer = Pick<WireguardPeer, 'publicKey' | 'endpoint' | 'allowedIps' | 'keepaliveSeconds'>;

/** The plan of a node in one family, if it is reached by WireGuard. */
export type WireguardPlan = Extract<PeerPlan, { kind: 'wireguard' }>;

/**
 * The peer that a node's plans make, of whichever families. It is sent to at its IPv4 address where it has both.
 *
 * @returns undefined: there are none
 */
export function wantedPeer(
  plans: readonly WireguardPlan[],
  settings: { readonly port: number; readonly keepaliveSeconds: number },
): WantedPeer | undefined {
  const first = plans.find(({ remote }) => remote.family === 'IPv4') ?? plans[0];
  if (!first) return undefined;
  const { publicKey, remote, port = settings.port } = first;
  return {
    publicKey,
    endpoint: { ip: remote, port },
    allowedIps: plans.flatMap((plan) => [
      ...plan.ranges,
      { address: plan.remote, prefixLength: addressBits(plan.remote.family) },
    ]),
    keepaliveSeconds: settings.keepaliveSeconds,
  };
}

/**
 * What to do so that the device knows `wanted` in place of `present`, both by key text.
 *
 * Peers come before those that go, so that an address moves from one key to another in one step. Adding an address takes nothing
 * away from a peer for even a moment; taking one away does. A peer that takes addresses over from one that goes, as after a change
 * of key, is spoken to at once: what its node has to send waits for a handshake, and its own found nobody who knew the key. So is one
 * that was removed lately (`parted`, key texts).
 */
export function* diffPeers(
  present: ReadonlyMap<string, PresentPeer>,
  wanted: ReadonlyMap<string, WantedPeer>,
  parted: { has(key: string): boolean },
): Steps<PeerChange[]> {
  const gone = [...present].filter(([key]) => !wanted.has(key)).map(([, peer]) => peer);
  const orphans = new Set<string>();
  for (const { allowedIps } of gone) {
    for (const range of allowedIps) orphans.add(formatCidr(range));
    yield;
  }
  const changes: PeerChange[] = [];
  for (const [key, peer] of wanted) {
    const known = present.get(key);
    const takesOver = () => peer.allowedIps.some((range) => orphans.has(formatCidr(range)));
    changes.push(...(known ? changeOf(known, peer) : newPeer(peer, parted.has(key) || takesOver())));
    yield;
  }
  for (const { publicKey } of gone) changes.push({ publicKey, remove: true });
  return changes;
}

function newPeer(peer: WantedPeer, isSpokenTo: boolean): PeerChange[] {
  const { publicKey, keepaliveSeconds } = peer;
  if (!isSpokenTo) return [peer];
  // Beginning to keep a path open sends a packet along it.
  const spoken = { ...peer, keepaliveSeconds: keepaliveSeconds || MOMENTARY };
  return keepaliveSeconds ? [spoken] : [spoken, { publicKey, updateOnly: true, keepaliveSeconds }];
}

/** Seconds, of which none pass. */
const MOMENTARY = 60;

function changeOf(present: PresentPeer, wanted: WantedPeer): PeerChange[] {
  const { publicKey, endpoint, allowedIps, keepaliveSeconds } = wanted;
  const has = new Set(present.allowedIps.map(formatCidr));
  const missing = allowedIps.filter((range) => !has.has(formatCidr(range)));
  const isTooMuch = has.size + missing.length > new Set(allowedIps.map(formatCidr)).size;
  const change = {
    ...(!sameEndpoint(present.endpoint, endpoint) && { endpoint }),
    ...(present.keepaliveSeconds !== keepaliveSeconds && { keepaliveSeconds }),
    ...(isTooMuch ? { allowedIps, replaceAllowedIps: true } : missing.length > 0 && { allowedIps: missing }),
  };
  return Object.keys(change).length === 0 ? [] : [{ publicKey, ...change }];
}

/** What changes of peers say about the device: a line for each that it lacks, has too much, or has otherwise. */
export function peerDrift(
  changes: readonly PeerChange[],
  wanted: ReadonlyMap<string, Omit<PresentPeer, 'publicKey'>>,
  present: ReadonlyMap<string, Omit<PresentPeer, 'publicKey'>>,
): Drift[] {
  return [...new Set(changes.map(({ publicKey }) => formatKey(publicKey)))].map((key): Drift => {
    const [ours, theirs] = [wanted.get(key), present.get(key)];
    const difference = !theirs ? 'missing' : ours ? 'changed' : 'unexpected';
    return { object: `peer ${key}`, difference, ours: peerLines(ours), theirs: peerLines(theirs) };
  });
}

/** What differs of the device itself. The private key is nobody's to see. */
export function settingsDrift(settings: DeviceSettings): Drift[] {
  return Object.keys(settings).map((name) => {
    return { object: `device ${SETTING_NAMES[name as keyof DeviceSettings]}`, difference: 'changed' };
  });
}

const SETTING_NAMES: Readonly<Record<keyof DeviceSettings, string>> = {
  privateKey: 'private key',
  port: 'port',
  fwmark: 'fwmark',
};

function peerLines(peer: Omit<PresentPeer, 'publicKey'> | undefined): string[] {
  if (!peer) return [];
  const { endpoint, allowedIps, keepaliveSeconds } = peer;
  const where = endpoint ? formatIpPort(endpoint.ip, endpoint.port) : '(none)';
  const ranges = allowedIps.map(formatCidr).sort().join(',');
  return [`endpoint ${where} allowed-ips ${ranges} persistent-keepalive ${keepaliveSeconds}`];
}

/** Whether both are the same address and port, or both missing. */
export function sameEndpoint(a: Endpoint | undefined, b: Endpoint | undefined): boolean {
  if (!a || !b) return a === b;
  return a.port === b.port && ipEquals(a.ip, b.ip);
}

/**
 * What is wanted, with what the device has of families whose nodes are not known yet: an agent that has just started must not
 * take it away.
 */
export function* keepUnknown(
  wanted: ReadonlyMap<string, WantedPeer>,
  present: ReadonlyMap<string, PresentPeer>,
  isKnown: (family: IpFamily) => boolean,
): Steps<ReadonlyMap<string, WantedPeer>> {
  const all = new Map(wanted);
  for (const [key, { publicKey, endpoint, keepaliveSeconds, allowedIps }] of present) {
    yield;
    const kept = allowedIps.filter(({ address }) => !isKnown(address.family));
    const peer = wanted.get(key);
    if (kept.length === 0 || !(peer || endpoint)) continue;
    // Which of a node's addresses it is sent to is decided when all are known.
    const goesOn = endpoint && !isKnown(endpoint.ip.family) ? endpoint : (peer?.endpoint ?? endpoint!);
    all.set(key, {
      publicKey,
      endpoint: goesOn,
      keepaliveSeconds: peer?.keepaliveSeconds ?? keepaliveSeconds,
      allowedIps: [...(peer?.allowedIps ?? []), ...kept],
    });
  }
  return all;
}
