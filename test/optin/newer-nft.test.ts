import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from 'vitest';
import { parseCidr } from '../../src/core/index.ts';
import { createNamespace, removeAll } from '../lab/namespace.ts';
import { dataplaneIn } from '../lab/nftables/fixtures.ts';
import { completePlan } from '../samples/complete-plan.ts';

// `npm run test:newer-nft`: the nft of Debian 13 reads what we write. It crashes where an older one does not, and the other
// way round: each reads the hints for it in its own way.

const ROOT = join(fileURLToPath(new URL('../..', import.meta.url)), '.cache/newer-nft/root');
const LIBRARIES = join(ROOT, 'usr/lib/x86_64-linux-gnu');
const NFT = [join(LIBRARIES, 'ld-linux-x86-64.so.2'), '--library-path', LIBRARIES, join(ROOT, 'usr/sbin/nft')] as const;

afterAll(removeAll);

it.each([
  ['IPv4', 'ip', [parseCidr('10.96.0.0/16')]],
  ['IPv6', 'ip6', [parseCidr('fd00:10:96::/112')]],
] as const)(
  'lists everything there is of a plan with everything, and loads it again, %s',
  async (family, nftFamily, serviceCidrs) => {
    const namespace = createNamespace('newer-nft');
    const [program, ...args] = NFT;
    expect(namespace.run(program, ...args, '--version')).toContain('v1.1.3');
    const plan = completePlan(family, { serviceCidrs });
    await dataplaneIn(namespace, family).resync(plan);
    const text = namespace.run(program, ...args, 'list', 'table', nftFamily, 'nodeplane');
    for (const { name, internalVerdict } of plan.ports.values()) {
      if (internalVerdict === 'forward') expect(text).toContain(`comment "${name}`);
    }
    const chains = (listing: string) => (listing.match(/^\tchain \S+/gm) ?? []).sort();
    expect(chains(text)).toEqual(chains(namespace.run('nft', 'list', 'table', nftFamily, 'nodeplane')));

    // Debian 12's cannot: it aborts on affinity of IPv6.
    const loaded = createNamespace('newer-nft-loaded');
    loaded.run('sh', '-ec', 'listing=$1; shift; printf %s "$listing" | "$@" -f -', 'sh', text, ...NFT);
    expect(chains(loaded.run(program, ...args, 'list', 'table', nftFamily, 'nodeplane'))).toEqual(chains(text));
  },
);
