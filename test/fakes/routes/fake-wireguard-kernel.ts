import { type Cidr, formatCidr, KernelError } from '../../../src/core/index.ts';
import {
  formatKey,
  type PeerChange,
  publicKeyOf,
  type WireguardDevice,
  type WireguardPeer,
} from '../../../src/netlink/wireguard/index.ts';
import type { DeviceSettings, WireguardKernel } from '../../../src/routes/index.ts';

type FakePeer = Omit<WireguardPeer, 'allowedIps'> & { readonly allowedIps: Map<string, Cidr> };

/** One WireGuard device, as the kernel keeps it: an allowed address belongs to one peer. */
export class FakeWireguardKernel implements WireguardKernel {
  /** Requests so far; of peers, each counts. */
  requests = 0;
  /** The keys of peers, as text, that are refused (ENOMEM). */
  readonly refused = new Set<string>();
  /** What peers were told, in order. */
  readonly changes: PeerChange[] = [];
  readonly #index: number;
  #settings: Omit<WireguardDevice, 'index' | 'name' | 'peers'> = {
    privateKey: undefined,
    publicKey: undefined,
    port: 0,
    fwmark: 0,
  };
  /** By key. */
  readonly #peers = new Map<string, FakePeer>();
  /** By allowed address, the key of the peer that has it. */
  readonly #owners = new Map<string, string>();

  constructor(index: number) {
    this.#index = index;
  }

  get device(): WireguardDevice {
    const peers = [...this.#peers.values()].map((peer) => ({ ...peer, allowedIps: [...peer.allowedIps.values()] }));
    return { index: this.#index, name: 'nodeplane-wg', ...this.#settings, peers };
  }

  async read(index: number): Promise<WireguardDevice> {
    this.requests++;
    this.#check(index);
    return this.device;
  }

  configure(index: number, { privateKey, port, fwmark }: DeviceSettings): void {
    this.requests++;
    this.#check(index);
    if (privateKey) this.#settings = { ...this.#settings, privateKey, publicKey: publicKeyOf(privateKey) };
    if (port !== undefined) this.#settings = { ...this.#settings, port };
    if (fwmark !== undefined) this.#settings = { ...this.#settings, fwmark };
  }

  apply(index: number, peers: readonly PeerChange[]): readonly (KernelError | undefined)[] {
    this.#check(index);
    return peers.map((change) => {
      this.requests++;
      this.changes.push(change);
      const key = formatKey(change.publicKey);
      if (this.refused.has(key)) return kernelError('WG_CMD_SET_DEVICE', 12);
      this.#change(key, change);
      return undefined;
    });
  }

  // What others do.

  /** Changes peers without a word. */
  meddle(change: (peer: WireguardPeer) => WireguardPeer | undefined): void {
    for (const peer of this.device.peers) {
      const key = formatKey(peer.publicKey);
      const after = change(peer);
      this.#change(key, { publicKey: peer.publicKey, remove: true });
      if (!after) continue;
      this.#change(key, { publicKey: peer.publicKey, allowedIps: after.allowedIps });
      this.#peers.set(key, { ...after, allowedIps: this.#peers.get(key)!.allowedIps });
    }
  }

  /** All peers in lines, in the order of their keys. */
  print(): string[] {
    return this.device.peers
      .map(({ publicKey, endpoint, allowedIps, keepaliveSeconds }) => {
        const at = endpoint ? `${Buffer.from(endpoint.ip.bytes).toString('hex')}:${endpoint.port}` : 'nowhere';
        return `${formatKey(publicKey)} ${at} ${keepaliveSeconds} ${allowedIps.map(formatCidr).sort().join(' ')}`;
      })
      .sort();
  }

  #change(key: string, change: PeerChange): void {
    const { publicKey, remove, updateOnly, replaceAllowedIps, allowedIps = [] } = change;
    const known = this.#peers.get(key);
    if (known && (remove || replaceAllowedIps)) for (const text of known.allowedIps.keys()) this.#owners.delete(text);
    if (remove) this.#peers.delete(key);
    if (remove || (updateOnly && !known)) return;
    const peer: FakePeer = {
      publicKey,
      endpoint: change.endpoint ?? known?.endpoint,
      keepaliveSeconds: change.keepaliveSeconds ?? known?.keepaliveSeconds ?? 0,
      lastHandshake: known?.lastHandshake,
      receivedBytes: 0n,
      sentBytes: 0n,
      allowedIps: known && !replaceAllowedIps ? known.allowedIps : new Map(),
    };
    this.#peers.set(key, peer);
    for (const range of allowedIps) {
      const text = formatCidr(range);
      const owner = this.#owners.get(text);
      if (owner !== undefined && owner !== key) this.#peers.get(owner)!.allowedIps.delete(text);
      this.#owners.set(text, key);
      peer.allowedIps.set(text, range);
    }
  }

  #check(index: number): void {
    if (index !== this.#index) throw kernelError('WG_CMD_GET_DEVICE', 19);
  }
}

function kernelError(operation: string, errno: number): KernelError {
  return new KernelError('ERR_NETLINK_ACK', { operation, object: 'WireGuard device', errno });
}
