import { expect, it } from 'vitest';
import type { Status } from '../status/status.ts';
import { namesFor } from './show-trace.ts';
import type { FlowReport, TraceReport } from './trace-report.ts';

const PORT = { clusterIp: '10.96.0.10', port: 80, protocol: 'TCP', externalIps: [], loadBalancerVips: [] };
const ENDPOINTS = [{ address: '10.244.2.2', port: 8080 }];
const SERVICES = [
  { name: 'shop/datagrams', ports: [{ ...PORT, protocol: 'UDP', endpoints: ENDPOINTS }] },
  { name: 'shop/web', ports: [{ ...PORT, endpoints: ENDPOINTS }] },
];

/** What stands beside an address after a flow. */
async function nameOf(text: string, flow: Pick<FlowReport, 'destination' | 'endpoint'>): Promise<string | undefined> {
  const report = {
    question: { service: null, destinations: [`${flow.destination}/tcp`] },
    flows: [flow],
  } as unknown as TraceReport;
  const names = await namesFor(report, async () => SERVICES as unknown as Status['services']['services']);
  return names(text);
}

it('names the Service whose address was asked for, and that of an endpoint that a flow was translated to', async () => {
  const flow = { destination: '10.96.0.10:80', endpoint: '10.244.2.2:8080' };
  expect(await nameOf('10.244.2.2:8080', flow)).toBe('shop/web');
  expect(await nameOf('10.96.0.10:80', flow)).toBe('shop/web');
  expect(await nameOf('10.96.0.10:80', { ...flow, endpoint: null })).toBe('shop/web');
});

it('names none beside a pod that was asked for itself', async () => {
  expect(await nameOf('10.244.2.2:8080', { destination: '10.244.2.2:8080', endpoint: null })).toBeUndefined();
});
