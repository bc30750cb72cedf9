import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import type { IpFamily } from '../../src/core/index.ts';
import { inNetns, writeSysctl } from '../../src/sys/index.ts';
import { type Agent, type AgentOptions, startAgent } from './agent-process.ts';
import type { ConfList } from './cni-runtime.ts';
import { createHost, type Host } from './host.ts';
import { type CountedRule, type IptablesVariant, parseCountedRules, saveProgram } from './iptables-rules.ts';
import type { TestNamespace } from './namespace.ts';
import { createPod, type Pod } from './pod.ts';
import { ip, type Wire } from './wire.ts';

/** A Kubernetes node. As a host it is the node's own processes (the host network). */
export interface LabNode extends Host {
  readonly podCidrs: readonly string[];
  /** The network configuration pods are attached with. */
  readonly conflist: ConfList;
  /** Makes a pod by the real CNI plugin; its addresses are in `ips`. Throws with the plugin's words when it fails. */
  addPod(name: string, options?: { readonly conflist?: ConfList }): Pod;
  /** Runs `nodeplane agent` in the node and waits until its first sync is done. */
  startAgent(options: AgentOptions): Promise<Agent>;
  /** The rules of one iptables variant, as its save program prints them. */
  iptablesSave(variant: IptablesVariant, family?: IpFamily): string;
  /** The same rules with how many packets met each. */
  iptablesCounters(variant: IptablesVariant, family?: IpFamily): CountedRule[];
}

/** What to make a node of. */
export interface CreateNodeInput {
  readonly name: string;
  readonly namespace: TestNamespace;
  readonly wire: Wire;
  /** Its addresses on the wire. */
  readonly ips: readonly string[];
  readonly podCidrs: readonly string[];
  /** @default a bridge `cni0` with the pod CIDRs */
  readonly conflist?: ConfList | undefined;
  /** The lab's folder: address reservations, logs and locks. */
  readonly folder: string;
  /** Makes the namespace of a pod. */
  readonly podNamespace: (podName: string) => TestNamespace;
}

export function createLabNode(input: CreateNodeInput): LabNode {
  const { name, namespace, wire, folder } = input;
  wire.plug(namespace, 'eth0', input.ips);
  inNetns(namespace.path, () => {
    writeSysctl('net/ipv4/ip_forward', 1);
    writeSysctl('net/ipv6/conf/all/forwarding', 1);
    // The node that runs the lab may be stricter, and IPv4 settings are inherited from it.
    writeSysctl('net/ipv4/conf/all/rp_filter', 0);
    writeSysctl('net/ipv4/conf/default/rp_filter', 0);
  });
  // Without any route a process on the node could not even try a Service address.
  ip(
    namespace,
    wire.gateways
      .filter((gateway) => input.ips.some((address) => isIPv6(address) === isIPv6(gateway)))
      .map((gateway) => `route add default via ${gateway}`),
  );
  const host = createHost({ name, namespace, ips: input.ips });
  const conflist = input.conflist ?? bridgeConflist(input.podCidrs, join(folder, `ipam-${name}`));
  const save = (variant: IptablesVariant, family: IpFamily, ...flags: string[]) =>
    namespace.run(saveProgram(variant, family), ...flags);
  return {
    ...host,
    podCidrs: input.podCidrs,
    conflist,
    addPod: (podName, options = {}) =>
      createPod(podName, input.podNamespace(podName), namespace, options.conflist ?? conflist),
    startAgent: (options) => startAgent(host, folder, options),
    iptablesSave: (variant, family = 'IPv4') => save(variant, family),
    iptablesCounters: (variant, family = 'IPv4') => parseCountedRules(save(variant, family, '-c')),
  };
}

/** The network most nodes have: one bridge, one address per pod CIDR, the bridge as gateway. */
function bridgeConflist(podCidrs: readonly string[], dataDir: string): ConfList {
  return {
    cniVersion: '1.0.0',
    name: 'lab',
    plugins: [
      {
        type: 'nodeplane-cni',
        bridge: 'cni0',
        isDefaultGateway: true,
        hairpinMode: true,
        ipam: { type: 'host-local', ranges: podCidrs.map((subnet) => [{ subnet }]), dataDir },
      },
    ],
  };
}
