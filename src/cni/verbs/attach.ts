import { completeAttachment } from '../../ipam/index.ts';
import type { Link } from '../../netlink/route/index.ts';
import { failpoint } from '../../sys/index.ts';
import { parseNetworkConfig, storeLocation } from '../config/config.ts';
import { warnOfLackingAnnotations, warnOfUnknownKeys } from '../config/known-keys.ts';
import type { MadeInterface } from '../features/index.ts';
import type { Addressing } from '../link/addressing.ts';
import type { Attaching, Connection } from '../link/attaching.ts';
import { checkNotAttached, waitForCarrier } from '../link/host-link.ts';
import { checkInterfaceAbsent, configurePodLink } from '../link/pod-link.ts';
import { openPodNamespace } from '../link/pod-namespace.ts';
import { withHost } from '../link/sockets.ts';
import { enableForwarding } from '../link/sysctls.ts';
import { UndoStack } from '../link/undo.ts';
import { obstructedWays } from '../link/way-to-pod.ts';
import { podNetwork } from '../pod-networks.ts';
import { attachmentKey } from '../protocol/attachment-key.ts';
import { readAttachment } from '../protocol/environment.ts';
import { podMac } from '../protocol/mac.ts';
import { appendResult, previousResult } from '../protocol/previous-result.ts';
import type { CniResult, ResultInterface } from '../protocol/result.ts';
import { assignAddresses } from './assign.ts';
import type { VerbRequest } from './request.ts';
import { wantedAttachment, wantedFeatures } from './wanted-features.ts';

/**
 * ADD: gives a pod an interface, addresses, and what else its network asks for.
 *
 * What can be refused is checked before anything changes. A step that fails takes the steps before it back.
 *
 * @throws CniError; NodeplaneError of the layers below
 */
export async function attach(request: VerbRequest): Promise<CniResult> {
  const { header, env, netns, warn } = request;
  const environment = readAttachment(env, netns);
  const config = parseNetworkConfig(header, env.CNI_ARGS);
  warnOfUnknownKeys(header.raw, config, warn);
  warnOfLackingAnnotations(header.raw, env.CNI_ARGS, warn);
  failpoint('start');
  const previous = previousResult(header, environment.ifname);
  const pod = openPodNamespace(environment);
  try {
    return await withHost(async (host) => {
      const key = attachmentKey(config.name, environment);
      const attaching = { config, header, env, key, pod, host, undo: new UndoStack(), warn };
      return appendResult(previous, await attachPod(attaching));
    });
  } finally {
    pod.close();
  }
}

async function attachPod(attaching: Attaching): Promise<CniResult> {
  const { config, key, pod, host, undo, warn } = attaching;
  checkInterfaceAbsent(pod, key.owner.ifname);
  checkNotAttached(host, key);
  const network = podNetwork(config.mode);
  const excluded = network.checkNode(host, config);
  try {
    const addressing = network.addressing.derive(config, await assignAddresses(attaching, excluded));
    const mac = podMac(config.mac, key, addressing.ips);
    const connection = network.connect(attaching, addressing, mac);
    const { hostLink, bridge, gateway } = connection;
    const routes = configurePodLink(attaching, hostLink, addressing);
    failpoint('pod-link');
    if (!config.disableContainerInterface) waitForCarrier(host, hostLink);
    const extra = await setUpFeatures(attaching, connection, addressing, mac);
    failpoint('features');
    // After all that can be taken back, because it is the node's and not this pod's.
    if (config.isGateway) enableForwarding(addressing.families);
    for (const obstacle of obstructedWays(host, addressing, connection)) warn(obstacle);
    completeAttachment(storeLocation(attaching.header), key.hostName);
    failpoint('complete');
    const interfaces = [
      ...(bridge ? [describeLink(bridge)] : []),
      describeLink(hostLink),
      { name: key.owner.ifname, mac, mtu: hostLink.mtu, sandbox: pod.path },
    ];
    const ips = addressing.ips.map((ip) => ({ ...ip, interface: interfaces.length - 1 }));
    if (gateway && gateway !== bridge) interfaces.push(describeLink(gateway));
    const ofExtra = extra.flatMap((made, i) =>
      (made.ips ?? []).map((ip) => ({ ...ip, interface: interfaces.length + i })),
    );
    return {
      interfaces: [...interfaces, ...extra],
      ips: [...ips, ...ofExtra],
      routes: [...routes, ...extra.flatMap((made) => made.routes ?? [])],
      dns: addressing.dns,
    };
  } catch (error) {
    await undo.run(warn);
    throw error;
  }
}

async function setUpFeatures(
  attaching: Attaching,
  connection: Connection,
  { ips }: Addressing,
  mac: Uint8Array,
): Promise<MadeInterface[]> {
  const { config, header, env, key, host, undo, warn } = attaching;
  const { hostLink, gateway } = connection;
  const gateways = ips.flatMap((ip) => ip.gateway ?? []);
  const wanted = wantedAttachment(config, key, ips, mac);
  const context = { ...wanted, header, env, pod: attaching.pod, host, hostLink, gateway, gateways, undo, warn };
  const made: MadeInterface[] = [];
  for (const entry of wantedFeatures(config, key)) {
    const feature = await entry.load();
    made.push(...(await feature.setUp(context)));
  }
  return made;
}

function describeLink({ name, address, mtu }: Pick<Link, 'name' | 'address' | 'mtu'>): ResultInterface {
  return { name, mac: address, mtu };
}
