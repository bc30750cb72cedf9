import { isEnabled } from '../../config/index.ts';
import { type IpFamily, tryParseIp } from '../../core/index.ts';
import { nodeIpsOf, objectName, type Service } from '../../kube/index.ts';
import { AddressRules, API_SERVER_SERVICE, localAddressesOf, servicePortsOf } from '../../proxy/index.ts';
import { IPVS_DEVICE } from '../../proxy/ipvs/index.ts';
import type { Check, World } from '../check.ts';
import type { ClusterObjects } from '../facts/cluster-facts.ts';
import { firstFew, ok, skipped, warning } from '../finding.ts';
import { NO_CLUSTER } from './cluster.ts';

const FAMILIES: readonly IpFamily[] = ['IPv4', 'IPv6'];

/**
 * What the agent will refuse of Services, as it says when it runs. ServiceCIDRs and the slices of the API server are not asked for:
 * who may only look has no right to them.
 */
function rulesOf({ config, node, cluster: { origin } }: World, objects: ClusterObjects): AddressRules {
  const { nodeIp, externalIpCidrs } = config;
  const ofServices = node.links().find(({ name }) => name === IPVS_DEVICE)?.index;
  return new AddressRules({
    serviceCidrs: [],
    nodes: [],
    nodeIps: [...(objects.node ? nodeIpsOf(objects.node) : []), ...(nodeIp ? [nodeIp] : [])],
    ownAddresses: localAddressesOf(node.addresses(), ofServices).own,
    apiServer: origin.kind === 'api' ? tryParseIp(origin.host) : undefined,
    apiService: objects.services.find((service) => objectName(service) === API_SERVER_SERVICE),
    apiSlices: [],
    externalIpCidrs,
  });
}

const refused: Check = {
  name: 'cluster.refused-addresses',
  async look(world) {
    const { cluster, config } = world;
    if (cluster.origin.kind === 'none') return skipped(`addresses of Services: ${NO_CLUSTER}`);
    const objects = await cluster.objects();
    const allowed = {
      externalIps: isEnabled(config.featureGates, 'AllowServiceExternalIPs'),
      addressRules: rulesOf(world, objects),
    };
    const whyRefused = (service: Service): string | undefined =>
      FAMILIES.map((family) => servicePortsOf(service, family, allowed))
        .filter(({ restrictions }) => restrictions.has('refused'))
        .flatMap(({ problems }) => problems)[0];
    const found = objects.services.flatMap((service) => {
      const why = whyRefused(service);
      return why === undefined ? [] : [`${objectName(service)}: ${why}`];
    });
    if (found.length === 0) return ok('no Service has an address that is refused');
    const services = found.length === 1 ? '1 Service has an address' : `${found.length} Services have addresses`;
    return warning(
      `${services} that kube-proxy serves and nodeplane refuses: ${firstFew(found)}`,
      'docs/operations.md says what to do instead: "Addresses no Service gets"',
    );
  },
};

export const ADDRESS_CHECKS: readonly Check[] = [refused];
