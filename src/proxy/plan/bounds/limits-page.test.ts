import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { LIMITS } from './limits.ts';

it('docs/operations.md has the limits as they are', () => {
  const page = readFileSync(new URL('../../../../docs/operations.md', import.meta.url), 'utf8');
  const [, table = ''] = /^## Limits\n([\s\S]*?)\n## /m.exec(page) ?? [];
  const told = (limit: number) => limit.toLocaleString('en-US');
  const { ports, addresses, destinations, sourceRanges, allowedSources } = LIMITS;
  expect(sourceRanges).toBe(allowedSources);
  for (const row of [
    `| ports of a Service | ${told(ports)} |`,
    `| external IPs; load-balancer VIPs | ${told(addresses)} each |`,
    `| ports x addresses | ${told(destinations)} |`,
    `| load-balancer source ranges; x VIPs x ports | ${told(sourceRanges)} each |`,
    `| endpoints x ports | ${told(LIMITS.endpoints)}; fewer with more than three external addresses: x addresses ${told(LIMITS.endpointElements)} |`,
    `| ports of all slices of a Service | ${told(LIMITS.slicePorts)} |`,
    `| endpoints x ports of all Services | ${told(LIMITS.endpointsOfNode)};`,
  ]) {
    expect(table).toContain(row);
  }
});
