import { atOnce, type IpFamily, parseIp } from '../../src/core/index.ts';
import {
  type EndpointSlice,
  IPVS_SCHEDULER_ANNOTATION,
  type Protocol,
  type Service,
  type ServiceSpec,
  type SliceEndpoint,
} from '../../src/kube/index.ts';
import {
  type NodePlan,
  type Plan,
  Planner,
  type PlannerOptions,
  planService,
  type ServicePortPlan,
  type TrafficPolicy,
} from '../../src/proxy/index.ts';
import { ipvsMode } from '../../src/proxy/ipvs/index.ts';
import { makeService, makeSlice } from '../fakes/service-objects.ts';

/** A Service port in a few words; everything else follows as it does from a real Service and its slices. */
export interface SamplePort {
  /** `ns/name:port` */
  readonly name: string;
  readonly protocol?: Protocol;
  readonly clusterIp: string;
  readonly port?: number;
  readonly nodePort?: number;
  readonly externalIps?: readonly string[];
  readonly loadBalancerVips?: readonly string[];
  readonly sourceRanges?: readonly string[];
  readonly affinitySeconds?: number;
  /** With `externalPolicy` Local only. */
  readonly healthCheckNodePort?: number;
  /** The scheduler it asks for in mode ipvs. */
  readonly hint?: string;
  readonly internalPolicy?: TrafficPolicy;
  readonly externalPolicy?: TrafficPolicy;
  /** `10.244.1.5:8080`, IPv6 in brackets. */
  readonly local?: readonly string[];
  readonly remote?: readonly string[];
}

/**
 * What the planner makes of such a Service port on a node called `here`. Unnamed ports have no colon in their keys:
 * `shop/web/TCP`.
 *
 * @throws Error when the planner finds fault with it: what it would not plan is no sample
 */
export function samplePort(sample: SamplePort): ServicePortPlan {
  const { name, protocol = 'TCP' } = sample;
  const { family } = parseIp(sample.clusterIp);
  const service = serviceOf(sample);
  const { ports, problems } = atOnce(
    planService(service, slicesOf(sample, family), { family, nodeName: HERE, zone: '', hint: ipvsMode.hint }),
  );
  const [port] = ports;
  const asPlanned = port?.healthCheckNodePort === (sample.healthCheckNodePort ?? 0);
  if (!port || !asPlanned || problems.length > 0) throw new Error(`${name} cannot be planned: ${problems.join('; ')}`);
  return { ...port, key: `${name}/${protocol}` };
}

export function sampleNode(overrides: Partial<NodePlan> = {}): NodePlan {
  return {
    localDetector: { kind: 'none' },
    masqueradeMark: 0x4000,
    masqueradeAll: false,
    nodePortAddresses: 'all',
    nodeIp: undefined,
    ...overrides,
  };
}

/** A planner of IPv4 on a node called `n1`. */
export function samplePlanner(options: Partial<PlannerOptions> = {}): Planner {
  return new Planner({ family: 'IPv4', nodeName: 'n1', node: sampleNode(), ...options });
}

export function samplePlan(family: IpFamily, node: NodePlan, ports: readonly ServicePortPlan[]): Plan {
  return { family, node, ports: new Map(ports.map((port) => [port.key, port])) };
}

const HERE = 'here';

function serviceOf(sample: SamplePort): Service {
  const [name, portName] = sample.name.split(':');
  const { healthCheckNodePort = 0, affinitySeconds = 0, hint } = sample;
  const spec: ServiceSpec = {
    clusterIP: sample.clusterIp,
    ports: [
      {
        port: sample.port ?? 80,
        nodePort: sample.nodePort ?? 0,
        protocol: sample.protocol ?? 'TCP',
        ...(portName !== undefined && { name: portName }),
      },
    ],
    externalIPs: sample.externalIps ?? [],
    loadBalancerSourceRanges: sample.sourceRanges ?? [],
    internalTrafficPolicy: sample.internalPolicy ?? 'Cluster',
    externalTrafficPolicy: sample.externalPolicy ?? 'Cluster',
    ...(healthCheckNodePort !== 0 && { type: 'LoadBalancer', healthCheckNodePort }),
    ...(affinitySeconds !== 0 && {
      sessionAffinity: 'ClientIP',
      sessionAffinityConfig: { clientIP: { timeoutSeconds: affinitySeconds } },
    }),
  };
  return makeService(name!, spec, {
    vips: sample.loadBalancerVips ?? [],
    ...(hint !== undefined && { annotations: { [IPVS_SCHEDULER_ANNOTATION]: hint } }),
  });
}

/** A slice for each target port there is among the endpoints. */
function slicesOf(sample: SamplePort, addressType: IpFamily): EndpointSlice[] {
  const [name, portName] = sample.name.split(':');
  const byPort = new Map<number, SliceEndpoint[]>();
  const add = (texts: readonly string[], nodeName: string) => {
    for (const text of texts) {
      const colon = text.lastIndexOf(':');
      const port = Number(text.slice(colon + 1));
      const endpoints = byPort.get(port) ?? [];
      endpoints.push({ addresses: [text.slice(0, colon).replace(/[[\]]/g, '')], nodeName });
      byPort.set(port, endpoints);
    }
  };
  add(sample.local ?? [], HERE);
  add(sample.remote ?? [], 'elsewhere');
  return [...byPort].map(([port, endpoints]) => {
    const slicePort = { port, protocol: sample.protocol ?? 'TCP', ...(portName !== undefined && { name: portName }) };
    return makeSlice(name!, endpoints, { suffix: `${port}`, addressType, ports: [slicePort] });
  });
}
