import { hostname } from 'node:os';
import type { IpAddress } from '../core/index.ts';
import { type DnsSettings, readResolvConf, release, reserve } from '../ipam/index.ts';
import { getLink, Netlink } from '../netlink/index.ts';
import { type Addressing, addressingOf, configuredGateways } from './addressing.ts';
import { type AttachmentKey, attachmentKey } from './attachment-key.ts';
import { ensureBridge, readBridge } from './bridge.ts';
import { planBridge } from './bridge-plan.ts';
import type { NetworkConfig } from './config.ts';
import type { AttachmentEnvironment } from './environment.ts';
import { checkNotAttached, configureHostLink, createVeth, deleteHostLink, waitForCarrier } from './host-link.ts';
import { macOfAddress, macOfText } from './mac.ts';
import { withNodeLock } from './node-lock.ts';
import { checkInterfaceAbsent, configurePodLink } from './pod-link.ts';
import { openPodNamespace, type PodNamespace } from './pod-namespace.ts';
import type { Attachment } from './result.ts';
import { enableForwarding } from './sysctls.ts';
import { UndoStack } from './undo.ts';

/** What the steps of one ADD share. */
interface Attaching {
  readonly config: NetworkConfig;
  readonly key: AttachmentKey;
  readonly pod: PodNamespace;
  /** A conversation about the namespace the plugin runs in. */
  readonly host: Netlink;
  readonly undo: UndoStack;
}

/**
 * ADD: gives a pod an interface on the bridge, with addresses, and makes the node its gateway.
 *
 * What can be refused is checked before anything changes. A step that fails takes the steps before it back.
 *
 * @param report told what could not be taken back
 * @throws CniError; NodeplaneError of the layers below
 */
export function attach(
  config: NetworkConfig,
  environment: AttachmentEnvironment,
  report: (message: string) => void,
): Attachment {
  const pod = openPodNamespace(environment);
  try {
    const host = Netlink.openRoute();
    try {
      const key = attachmentKey(config.name, environment);
      return attachPod({ config, key, pod, host, undo: new UndoStack() }, report);
    } finally {
      host.close();
    }
  } finally {
    pod.close();
  }
}

function attachPod(attaching: Attaching, report: (message: string) => void): Attachment {
  const { config, key, pod, host, undo } = attaching;
  const loopback = checkInterfaceAbsent(pod, key.owner.ifname);
  checkNotAttached(host, key);
  const bridgeAddresses = checkBridge(host, config);
  const dns = dnsOf(config);
  try {
    const addressing = reserveAddresses(attaching, bridgeAddresses);
    const bridgeIndex = plugIn(attaching, addressing);
    const hostLink = configureHostLink(host, key, config.hairpinMode);
    const podLink = {
      ifname: key.owner.ifname,
      index: hostLink.peerIndex,
      addresses: addressing.ips.map(({ address }) => address),
      routes: addressing.routes,
    };
    configurePodLink(pod, loopback, podLink, undo);
    waitForCarrier(host, hostLink);
    // The last step, because it is the node's and not this pod's, and is not taken back.
    if (config.isGateway) enableForwarding(addressing.families);
    // Read again: its MTU may have followed that of the new port.
    const bridge = getLink(host, { index: bridgeIndex });
    return {
      interfaces: [
        ...(bridge ? [{ name: bridge.name, mac: bridge.address, mtu: bridge.mtu }] : []),
        { name: hostLink.name, mac: hostLink.address, mtu: hostLink.mtu },
        { name: podLink.ifname, mac: podMac(addressing, key), mtu: hostLink.mtu, sandbox: pod.path },
      ],
      podInterface: bridge ? 2 : 1,
      ips: addressing.ips,
      routes: addressing.routes,
      dns,
    };
  } catch (error) {
    undo.run(report);
    throw error;
  }
}

/** Returns the addresses of the bridge, none of which may be handed out. Throws CniError 106. */
function checkBridge(host: Netlink, config: NetworkConfig): IpAddress[] {
  const state = readBridge(host, config.bridge);
  const { bridge: name, forceAddress } = config;
  planBridge(state, { name, forceAddress, configured: configuredGateways(config), gateways: [] });
  return state.addresses.map(({ address }) => address);
}

function reserveAddresses({ config, key, undo }: Attaching, excluded: readonly IpAddress[]): Addressing {
  const { ipam, name } = config;
  if (!ipam) return addressingOf(config, []);
  const location = { dataDir: ipam.dataDir, network: name };
  const reservations = reserve(location, { owner: key.owner, rangeSets: ipam.rangeSets, excluded });
  undo.add('reserve addresses', () => void release(location, key.owner));
  return addressingOf(config, reservations);
}

/** Makes the veth pair, and the bridge before it if this is the first pod. Returns the bridge's index. */
function plugIn({ config, key, pod, host, undo }: Attaching, addressing: Addressing): number {
  const settings = {
    name: config.bridge,
    gateways: addressing.bridgeAddresses,
    configured: configuredGateways(config),
    forceAddress: config.forceAddress,
    mac: bridgeMac(config, addressing),
    mtu: config.mtu,
  };
  return withNodeLock(() => {
    const { index } = ensureBridge(host, settings, undo);
    undo.add('make the veth pair', () => void deleteHostLink(host, key));
    createVeth(host, key, pod, { master: index, mtu: config.mtu, podMac: podMac(addressing, key) });
    return index;
  });
}

function bridgeMac({ bridge }: NetworkConfig, { bridgeAddresses: [gateway] }: Addressing): Uint8Array {
  // Without an address the bridge may be joined to those of other nodes: theirs must differ.
  return gateway ? macOfAddress(gateway.address) : macOfText(`${hostname()}/${bridge}`);
}

function podMac({ ips }: Addressing, { alias }: AttachmentKey): Uint8Array {
  const main = ips.find(({ address }) => address.address.family === 'IPv4') ?? ips[0];
  return main ? macOfAddress(main.address.address) : macOfText(`${alias}/pod`);
}

function dnsOf({ dns, ipam }: NetworkConfig): DnsSettings {
  const isSet = Object.keys(dns).length > 0;
  return isSet || !ipam?.resolvConf ? dns : readResolvConf(ipam.resolvConf);
}
