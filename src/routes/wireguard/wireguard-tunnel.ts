import {
  type Clock,
  type Drift,
  errorText,
  type IpFamily,
  inSlices,
  NodeplaneError,
  nothingToCompare,
  type Steps,
  SyncRunner,
  sameBytes,
  type Timer,
  yielder,
} from '../../core/index.ts';
import { formatKey, type PeerChange, publicKeyOf, type WireguardDevice } from '../../netlink/wireguard/index.ts';
import type { PeerPlan } from '../plan/planner.ts';
import type { Attachment } from '../plan/underlay.ts';
import { CHECK_MS, FULL_MS, RETRY } from '../sync/timing.ts';
import type { WireguardEvent } from './events.ts';
import { PartedPeers } from './parted-peers.ts';
import {
  diffPeers,
  keepUnknown,
  type PresentPeer,
  peerDrift,
  sameEndpoint,
  settingsDrift,
  type WantedPeer,
  type WireguardPlan,
  wantedPeer,
} from './peer-diff.ts';
import { SESSION_SECONDS } from './session.ts';
import { type SharedTunnel, wireguardMtu } from './shared-tunnel.ts';
import type { DeviceSettings, WireguardKernel } from './wireguard-kernel.ts';

export interface WireguardTunnelOptions {
  /** The private key that is to be used, 32 bytes; asked again and again. Throws when there is none. */
  readonly readKey: () => Uint8Array;
  /** UDP. */
  readonly port: number;
  /** 0 for none. */
  readonly keepaliveSeconds: number;
  /** Largest packet through the device; undefined: what the network between the nodes carries. */
  readonly mtu: number | undefined;
  readonly kernel: WireguardKernel;
  readonly clock: Clock;
  /** Called synchronously, in order. Must not throw. */
  readonly observe: (event: WireguardEvent) => void;
}

const MIN_INTERVAL_MS = 20;
/** Time between two looks at the key file. */
const KEY_MS = 5000;
/** Peers of one request to the kernel, which works out a shared secret for each. */
const PEERS_AT_ONCE = 100;

/**
 * The key and the peers of the WireGuard device, which both families share: their plans in, peers out. The device itself, as a link,
 * and the routes to it are those of each family. Everything is compared with the kernel at the start, now and then, and after a
 * failure; in between, a plan costs what it changes.
 */
export class WireguardTunnel implements SharedTunnel {
  readonly #options: WireguardTunnelOptions;
  readonly #runner: SyncRunner;
  readonly #families = new Set<IpFamily>();
  readonly #underlays = new Map<IpFamily, Attachment>();
  readonly #plans = new Map<IpFamily, Map<string, WireguardPlan>>();
  readonly #refusals = new Map<string, string>();
  /** By name, what the device was told. */
  readonly #committed = new Map<string, WantedPeer>();
  readonly #parted: PartedPeers;
  #touched = new Set<string>();
  #index: number | undefined;
  #key: Uint8Array | undefined;
  #inForce: Uint8Array | undefined;
  #keyTimer: Timer | undefined;
  #toldKeyError: string | undefined;
  #isStarted = false;

  constructor(options: WireguardTunnelOptions) {
    this.#options = options;
    this.#parted = new PartedPeers(options.clock);
    this.#runner = new SyncRunner({
      name: 'WireGuard',
      clock: options.clock,
      minIntervalMs: MIN_INTERVAL_MS,
      maxIntervalMs: FULL_MS,
      retry: RETRY,
      run: (full) => this.#sync(full),
      failed: (error, _full, retryInMs) => options.observe({ kind: 'syncFailed', error, retryInMs }),
      check: {
        intervalMs: CHECK_MS,
        run: () => this.#check(),
        failed: (error) => options.observe({ kind: 'verifyFailed', error }),
      },
    });
  }

  joins(family: IpFamily): void {
    this.#families.add(family);
  }

  ground(underlay: Attachment): { readonly publicKey: Uint8Array; readonly mtu: number } {
    this.#key ??= this.#options.readKey();
    const { family } = underlay.address;
    // A family whose way is not known yet has the same one, most often: the device begins with the MTU it will have.
    const expected = [...this.#families].map((one) => [one, underlay] as const);
    const underlays = new Map([...expected, ...this.#underlays, [family, underlay]]);
    const mtu = wireguardMtu(underlays, family, this.#options.mtu);
    this.#underlays.set(family, underlay);
    return { publicKey: publicKeyOf(this.#key), mtu };
  }

  replaced(family: IpFamily, index: number, plans: ReadonlyMap<string, PeerPlan>): void {
    const ofFamily = new Map<string, WireguardPlan>();
    for (const [name, plan] of plans) if (plan.kind === 'wireguard') ofFamily.set(name, plan);
    this.#plans.set(family, ofFamily);
    this.#index = index;
    if (this.#isStarted) this.#runner.requestFull();
    else this.#start();
  }

  changed(family: IpFamily, plans: ReadonlyMap<string, PeerPlan | undefined>): void {
    const ofFamily = this.#plans.get(family);
    if (!ofFamily) return;
    for (const [name, plan] of plans) {
      if (plan?.kind === 'wireguard') ofFamily.set(name, plan);
      else if (!ofFamily.delete(name)) continue;
      this.#touched.add(name);
    }
    if (this.#touched.size > 0) this.#runner.request();
  }

  /** Ends the work; the device stays as it is. */
  async stop(): Promise<void> {
    this.#keyTimer?.cancel();
    await this.#runner.stop();
  }

  /** In what the device differs from what it was told; between syncs. Rejects with KernelError. */
  async verify(): Promise<Drift[]> {
    if (this.#index === undefined || !this.#inForce) return [];
    const device = await this.#options.kernel.read(this.#index);
    const { settings, peers } = await inSlices(this.#differences(device, this.#inForce, this.#committed.values()));
    const present = await inSlices(byKey(device.peers));
    const wanted = await inSlices(byKey(this.#committed.values()));
    return [...settingsDrift(settings), ...peerDrift(peers, wanted, present)];
  }

  /** As `verify`, between the syncs. Rejects with ERR_DIFF too, when there is nothing to compare with. */
  compare(): Promise<Drift[]> {
    return this.#runner.between(async () => {
      if (!this.#inForce) throw nothingToCompare('WireGuard', 'the device is not set up');
      return this.verify();
    });
  }

  /** Makes the kernel what it is to be; resolves when it is. Rejects with what makes the sync fail. */
  repair(): Promise<void> {
    return this.#runner.runFull();
  }

  #start(): void {
    this.#isStarted = true;
    this.#watchKey();
    this.#runner.start();
  }

  async #sync(full: boolean): Promise<void> {
    const { clock, observe } = this.#options;
    const began = clock.now();
    const touched = this.#touched;
    this.#touched = new Set();
    const changes = full ? await this.#syncAll() : await this.#syncSome(touched);
    const seconds = (clock.now() - began) / 1000;
    observe({ kind: 'synced', full, seconds, changes, peers: this.#committed.size });
  }

  async #syncAll(): Promise<number> {
    const { kernel } = this.#options;
    const index = this.#index!;
    const key = this.#key!;
    const device = await kernel.read(index);
    const wanted = await inSlices(this.#wanted());
    const { settings, peers } = await inSlices(this.#differences(device, key, wanted.values()));
    if (Object.keys(settings).length > 0) this.#configure(index, settings);
    this.#committed.clear();
    for (const [name, peer] of wanted) this.#committed.set(name, peer);
    this.#tellRefusals(await this.#apply(peers), [...new Set([...wanted.keys(), ...this.#refusals.keys()])]);
    this.#inForceIs(key);
    return peers.length;
  }

  async #syncSome(names: ReadonlySet<string>): Promise<number> {
    const before: WantedPeer[] = [];
    const after: WantedPeer[] = [];
    for (const name of names) {
      const committed = this.#committed.get(name);
      const wanted = this.#wantedOf(name);
      if (committed) before.push(committed);
      if (wanted) after.push(wanted);
      if (wanted) this.#committed.set(name, wanted);
      else this.#committed.delete(name);
    }
    const changes = await inSlices(this.#diffOf(before, after));
    this.#tellRefusals(await this.#apply(changes), [...names]);
    return changes.length;
  }

  /** By name. */
  *#wanted(): Steps<ReadonlyMap<string, WantedPeer>> {
    const names = new Set([...this.#plans.values()].flatMap((plans) => [...plans.keys()]));
    const wanted = new Map<string, WantedPeer>();
    for (const name of names) {
      const peer = this.#wantedOf(name);
      if (peer) wanted.set(name, peer);
      yield;
    }
    return wanted;
  }

  #wantedOf(name: string): WantedPeer | undefined {
    const plans = [...this.#plans.values()].flatMap((ofFamily) => ofFamily.get(name) ?? []);
    return wantedPeer(plans, this.#options);
  }

  *#differences(
    device: WireguardDevice,
    key: Uint8Array,
    wanted: Iterable<WantedPeer>,
  ): Steps<{ readonly settings: DeviceSettings; readonly peers: readonly PeerChange[] }> {
    const { port } = this.#options;
    const settings = {
      ...(!(device.privateKey && sameBytes(device.privateKey, key)) && { privateKey: key }),
      ...(device.port !== port && { port }),
      ...(device.fwmark !== 0 && { fwmark: 0 }),
    };
    const wantedByKey = yield* byKey(wanted);
    const present = new Map<string, PresentPeer>(yield* byKey(device.peers));
    const all = yield* keepUnknown(wantedByKey, present, (family) => this.#plans.has(family));
    const committed = yield* byKey(this.#committed.values());
    const now = this.#options.clock.wallTime() / 1000;
    for (const peer of device.peers) {
      // A peer is sent to where it was last heard from, wherever that is.
      const isThere = peer.lastHandshake !== undefined && now - peer.lastHandshake < SESSION_SECONDS;
      const text = formatKey(peer.publicKey);
      const endpoint = wantedByKey.get(text)?.endpoint;
      const told = committed.get(text)?.endpoint;
      // An agent that was started again has told nothing of it yet.
      const isTold = told === undefined || sameEndpoint(told, endpoint);
      if (endpoint && isThere && isTold) present.set(text, { ...peer, endpoint });
      yield;
    }
    return { settings, peers: yield* diffPeers(present, all, this.#parted) };
  }

  *#diffOf(before: readonly WantedPeer[], after: readonly WantedPeer[]): Steps<PeerChange[]> {
    return yield* diffPeers(yield* byKey(before), yield* byKey(after), this.#parted);
  }

  #configure(index: number, settings: DeviceSettings): void {
    try {
      this.#options.kernel.configure(index, settings);
    } catch (cause) {
      const { port } = this.#options;
      const message = `Cannot set up the WireGuard device: ${errorText(cause)}; if UDP port ${port} belongs to another program (ss -lunp), choose another with --routes-wireguard-port`;
      throw new NodeplaneError('ERR_ROUTES', message, { facts: { port }, cause });
    }
  }

  /** @returns by key text, why something was refused */
  async #apply(changes: readonly PeerChange[]): Promise<ReadonlyMap<string, string>> {
    const refused = new Map<string, string>();
    this.#parted.note(changes);
    const rest = yielder();
    for (let at = 0; at < changes.length; at += PEERS_AT_ONCE) {
      const batch = changes.slice(at, at + PEERS_AT_ONCE);
      for (const [n, error] of this.#options.kernel.apply(this.#index!, batch).entries()) {
        if (error) refused.set(formatKey(batch[n]!.publicKey), errorText(error));
      }
      await rest();
    }
    return refused;
  }

  #tellRefusals(refused: ReadonlyMap<string, string>, names: readonly string[]): void {
    for (const name of names) {
      const peer = this.#committed.get(name);
      const text = peer && refused.get(formatKey(peer.publicKey));
      const reason = text === undefined ? undefined : `the kernel refuses it as a WireGuard peer: ${text}`;
      if (this.#refusals.get(name) === reason) continue;
      if (reason === undefined) this.#refusals.delete(name);
      else this.#refusals.set(name, reason);
      this.#options.observe({ kind: 'refused', name, reason });
    }
  }

  #inForceIs(key: Uint8Array): void {
    if (this.#inForce && sameBytes(this.#inForce, key)) return;
    this.#inForce = key;
    this.#options.observe({ kind: 'keyInForce', publicKey: publicKeyOf(key) });
  }

  async #check(): Promise<void> {
    const drifts = await this.verify();
    if (drifts.length === 0) return;
    this.#options.observe({ kind: 'driftFound', drifts });
    this.#runner.requestFull();
  }

  #watchKey(): void {
    const { clock } = this.#options;
    this.#keyTimer = clock.setTimer(() => {
      this.#readKey();
      this.#watchKey();
    }, KEY_MS);
  }

  /**
   * Another key in the file takes the place of the one in force. Sessions go on in one direction: what others send is still read, and
   * what is sent to them waits, up to 128 packets each, until they have heard of the new key and speak to it.
   */
  #readKey(): void {
    const { readKey, observe } = this.#options;
    try {
      const key = readKey();
      this.#toldKeyError = undefined;
      if (this.#key && sameBytes(this.#key, key)) return;
      this.#key = key;
      this.#runner.requestFull();
    } catch (error) {
      if (this.#toldKeyError !== errorText(error)) observe({ kind: 'keyFailed', error });
      this.#toldKeyError = errorText(error);
    }
  }
}

function* byKey<T extends { readonly publicKey: Uint8Array }>(peers: Iterable<T>): Steps<ReadonlyMap<string, T>> {
  const found = new Map<string, T>();
  for (const peer of peers) {
    found.set(formatKey(peer.publicKey), peer);
    yield;
  }
  return found;
}
