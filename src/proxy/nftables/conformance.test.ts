import { type KernelDump, testDataplane } from '../../../test/fakes/dataplane-suite.ts';
import { FakeNftables } from '../../../test/fakes/fake-nftables.ts';
import { snapshot } from '../../../test/samples/ruleset-snapshot.ts';
import type { IpFamily } from '../../core/index.ts';
import { type NftChange, nftFamily } from '../../netlink/nftables/index.ts';
import { NftablesDataplane } from './dataplane.ts';

const EINVAL = 22;

function dump(nft: FakeNftables, family: IpFamily): KernelDump {
  const all: Record<string, unknown> = {};
  for (const { name: table } of nft.listTables(nftFamily(family))) {
    all[`table ${table}`] = table;
    for (const [name, object] of Object.entries(snapshot(nft, family, table))) all[`${table} ${name}`] = object;
  }
  return all;
}

/** A table with a chain and a set of the same names as some of ours. */
function foreign(family: IpFamily): NftChange[] {
  const inTable = { family: nftFamily(family), table: 'somebody' } as const;
  const set = { ...inTable, name: 'cluster-ips' } as const;
  return [
    { operation: 'add', object: { kind: 'table', family: inTable.family, name: inTable.table } },
    { operation: 'add', object: { kind: 'chain', ...inTable, name: 'services' } },
    { operation: 'add', object: { kind: 'set', ...set, key: [family === 'IPv4' ? 'ipv4_addr' : 'ipv6_addr'] } },
  ];
}

testDataplane({
  isAtomic: true,
  // Chains that nobody needs stay until all is made anew.
  mayStay: (name) => name.includes(' chain '),
  make(family) {
    const nft = new FakeNftables();
    const chain = { kind: 'chain', family: nftFamily(family), table: 'nodeplane', name: 'services' } as const;
    return {
      start: () => new NftablesDataplane({ family, open: () => nft }),
      dump: () => dump(nft, family),
      writes: () => nft.commits.length,
      damage: () => nft.commitAsOther({ operation: 'flush', object: chain }),
      addForeign: () => nft.commitAsOther(...foreign(family)),
      refuse(clusterIps) {
        const begins = (key: Uint8Array) =>
          clusterIps.some(({ bytes }) => Buffer.compare(key.subarray(0, bytes.length), bytes) === 0);
        nft.refuse = ({ operation, object }) =>
          operation !== 'delete' && object.kind === 'elements' && object.elements.some(({ key }) => begins(key))
            ? EINVAL
            : undefined;
      },
    };
  },
});
