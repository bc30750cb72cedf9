import { parse } from 'yaml';
import { errorText, formatCidr, formatIp } from '../../core/index.ts';
import { ApiStatusError, internalIpsOf } from '../../kube/index.ts';
import { podCidrsOf } from '../../proxy/index.ts';
import type { Check, World } from '../check.ts';
import { fails, firstFew, type Outcome, ok, skipped, unknown, warning } from '../finding.ts';

/** Seconds by which clocks may differ before people should know, and before tokens and Leases go wrong. */
const CLOCK_WARNING_S = 10;
const CLOCK_FAILS_S = 300;

/** What is said where nothing leads to a cluster; `cluster.api-server` says why. */
export const NO_CLUSTER = 'nothing leads to an API server (cluster.api-server), and no --manifests are given';

/** What is said where there is no API server to ask. */
function notAsked({ cluster: { origin } }: World, what: string): Outcome | undefined {
  if (origin.kind === 'api') return undefined;
  if (origin.kind === 'manifests')
    return skipped(`${what}: objects come from "${origin.folder}", not from an API server`);
  return skipped(`${what}: ${NO_CLUSTER}`);
}

const apiServer: Check = {
  name: 'cluster.api-server',
  async look(world) {
    const { origin } = world.cluster;
    if (origin.kind === 'none') return skipped(`the API server: ${origin.reason}`);
    if (origin.kind !== 'api') return notAsked(world, 'the API server')!;
    try {
      const { version } = await world.cluster.server();
      const message = `${origin.server} answers (${version}), by ${origin.by}`;
      if (origin.by !== 'environment') return ok(message);
      return warning(
        `${message}: the ClusterIP, which somebody has to serve before the agent can start`,
        'give a --kubeconfig, or --master with an address that is no Service’s',
      );
    } catch (error) {
      return fails(
        `${origin.server} cannot be used: ${errorText(error)}`,
        'look at address, route, certificates and token from this node',
      );
    }
  },
};

const clock: Check = {
  name: 'cluster.clock',
  async look(world) {
    const none = notAsked(world, 'the clock');
    if (none) return none;
    const { aheadSeconds } = await world.cluster.server();
    if (aheadSeconds === undefined) return unknown('the API server does not tell its time');
    const message = `this node’s clock is ${Math.abs(aheadSeconds)} s ${aheadSeconds < 0 ? 'behind' : 'ahead of'} the API server’s`;
    if (Math.abs(aheadSeconds) < CLOCK_WARNING_S) return ok(message);
    const remedy = 'let NTP set it (chronyc tracking, timedatectl)';
    return Math.abs(aheadSeconds) < CLOCK_FAILS_S
      ? warning(message, remedy)
      : fails(`${message}: tokens and certificates count as expired, or not yet valid`, remedy);
  },
};

const kubeadm: Check = {
  name: 'cluster.kubeadm-proxy',
  async look(world) {
    const none = notAsked(world, 'kubeadm’s configuration');
    if (none) return none;
    let text: string | undefined;
    try {
      text = await world.cluster.kubeadmConfig();
    } catch (error) {
      if (error instanceof ApiStatusError && error.status === 403) {
        return unknown(
          'ConfigMap kube-system/kubeadm-config may not be read',
          'grant "get" on it, as deploy/overlays/preflight does, or look for proxy.disabled yourself',
        );
      }
      throw error;
    }
    if (text === undefined) return ok('this is no cluster of kubeadm');
    const { proxy } = (parse(text) ?? {}) as { proxy?: { disabled?: unknown } };
    if (proxy?.disabled === true) return ok('kubeadm leaves the proxy alone (proxy.disabled)');
    return warning(
      '"kubeadm upgrade apply" puts kube-proxy’s image and command back',
      'kubectl -n kube-system edit configmap kubeadm-config: proxy: {disabled: true} in ClusterConfiguration (v1beta4), or upgrade with --skip-phases=addon/kube-proxy',
    );
  },
};

const node: Check = {
  name: 'cluster.node',
  async look({ cluster, config }) {
    if (cluster.origin.kind === 'none') return skipped(`the Node object: ${NO_CLUSTER}`);
    const { node: object } = await cluster.objects();
    if (!object) return fails(`there is no Node "${config.nodeName}"`, 'name the right one: --hostname-override');
    const addresses = internalIpsOf(object).map(formatIp);
    if (addresses.length === 0)
      return fails(
        `Node "${config.nodeName}" has no InternalIP`,
        'kubelet --node-ip, or wait for the cloud controller',
      );
    return ok(`Node "${config.nodeName}" has ${addresses.join(', ')}`);
  },
};

const podCidrs: Check = {
  name: 'cluster.pod-cidrs',
  async look({ cluster, config: { cni, routes, pools, detectLocal } }) {
    const isNeeded =
      (cni && cni.podCidrs.length === 0 && !pools) || (routes && !pools) || detectLocal.mode === 'NodeCIDR';
    if (!isNeeded) return skipped('podCIDRs: nothing is made of them as configured');
    if (cluster.origin.kind === 'none') return skipped(`podCIDRs: ${NO_CLUSTER}`);
    const found = podCidrsOf((await cluster.objects()).node);
    if (found.length > 0) return ok(`this node’s pods have ${found.map(formatCidr).join(', ')}`);
    return fails(
      'the Node object has no podCIDRs',
      'kube-controller-manager --allocate-node-cidrs and --cluster-cidr, or --pod-cidrs-from=pool',
    );
  },
};

const objects: Check = {
  name: 'cluster.objects',
  async look({ cluster }) {
    if (cluster.origin.kind === 'none') return skipped(`Services: ${NO_CLUSTER}`);
    const { services, problems, doubts } = await cluster.objects();
    const found = [
      problems.length > 0 && `objects cannot be read: ${firstFew(problems)}`,
      doubts.length > 0 && `what is written is probably not meant: ${firstFew(doubts)}`,
    ].filter((text) => text !== false);
    if (found.length === 0) return ok(`${services.length} Services can be read`);
    return warning(found.join('; '), 'correct what is named; the rest is served');
  },
};

export const CLUSTER_CHECKS: readonly Check[] = [apiServer, clock, kubeadm, node, podCidrs, objects];
