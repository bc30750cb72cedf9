import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { parseCidr } from '../../../src/core/index.ts';
import type { Plan } from '../../../src/proxy/index.ts';
import { completePlan } from '../../samples/complete-plan.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { dataplaneIn, listing } from './fixtures.ts';

// What an operator reads: `nft list table ip nodeplane`, as files. After a wanted change:
// UPDATE_GOLDEN=1 npx vitest run --project lab test/lab/nftables/listing

const FOLDER = join(dirname(fileURLToPath(import.meta.url)), '../../golden/nftables');

afterAll(removeAll);

async function listed(plan: Plan): Promise<string> {
  const namespace = createNamespace('listing');
  await dataplaneIn(namespace, plan.family).resync(plan);
  return sortElements(listing(namespace, plan.family));
}

/** The kernel hashes with a number drawn at random: elements come in another order each time. One a line. */
function sortElements(text: string): string {
  return text.replaceAll(/elements = \{([^{}]*)\}/g, (_, list: string) => {
    const elements = list.split(/,\s+/).map((element) => element.trim());
    return `elements = {\n\t\t\t${elements.sort().join(',\n\t\t\t')} }`;
  });
}

describe('the listing of a plan with everything', () => {
  const serviceCidrs = { IPv4: [parseCidr('10.96.0.0/16')], IPv6: [parseCidr('fd00:10:96::/112')] };
  it.each([
    ['complete-ipv4', completePlan('IPv4', { serviceCidrs: serviceCidrs.IPv4 })],
    ['complete-ipv6', completePlan('IPv6', { serviceCidrs: serviceCidrs.IPv6 })],
    [
      'masquerade-all-bridge',
      completePlan('IPv4', {
        masqueradeAll: true,
        localDetector: { kind: 'bridge', interfaceName: 'cni0' },
        nodePortAddresses: [completePlan('IPv4').node.nodeIp!],
      }),
    ],
    ['prefix', completePlan('IPv4', { localDetector: { kind: 'prefix', interfacePrefix: 'veth' } })],
  ])('is test/golden/nftables/%s.nft', async (name, plan) => {
    const path = join(FOLDER, `${name}.nft`);
    const text = await listed(plan);
    if (process.env.UPDATE_GOLDEN) {
      mkdirSync(FOLDER, { recursive: true });
      writeFileSync(path, text);
    }
    expect(text).toBe(readFileSync(path, 'utf8'));
  });
});
