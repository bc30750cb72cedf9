import type { ServicePortPlan } from '../src/proxy/index.ts';
import { type SamplePort, samplePort } from '../test/samples/sample-plan.ts';

/** Address number `n` of 10.`net`.0.0/12, spread as a cluster allocates Service addresses: at random. */
export function sampleAddress(net: number, n: number): string {
  return address(net, Math.imul(n + 1, 0x9e3779b1) >>> 12);
}

/**
 * Service number `n` with `endpoints` endpoints on other nodes.
 *
 * @param more protocol, NodePort, ... @default TCP and nothing
 */
export function sampleService(n: number, endpoints: number, more: Partial<SamplePort> = {}): ServicePortPlan {
  return samplePort({
    ...more,
    name: `bench/service-${n}:http`,
    clusterIp: sampleAddress(96, n),
    remote: Array.from({ length: endpoints }, (_, i) => `${address(200, n * 10 + i)}:8080`),
  });
}

export function samplePorts(services: number, endpoints: number): ServicePortPlan[] {
  return Array.from({ length: services }, (_, n) => sampleService(n, endpoints));
}

function address(net: number, n: number): string {
  return `10.${net + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`;
}
