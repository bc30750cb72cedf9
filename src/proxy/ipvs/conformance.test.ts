import { testDataplane } from '../../../test/fakes/dataplane-suite.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { FakeIptables } from '../../../test/fakes/fake-iptables.ts';
import { FakeIpvsKernel } from '../../../test/fakes/fake-ipvs-kernel.ts';
import { ruleDump } from '../../../test/fakes/iptables-dump.ts';
import { formatIp, parseIp } from '../../core/index.ts';
import { IpvsDataplane } from './dataplane.ts';

const NODE = { IPv4: '192.168.0.7', IPv6: 'fd00:192:168::7' } as const;

testDataplane({
  isAtomic: false,
  make(family) {
    const kernel = new FakeIpvsKernel(family, [NODE[family]]);
    const iptables = new FakeIptables();
    const clock = new FakeClock();
    return {
      start: () => new IpvsDataplane({ family, variant: 'nft', exec: iptables.exec, kernel: kernel.reopened(), clock }),
      dump: () => ({ ...kernel.dump(), ...ruleDump(iptables, family) }),
      writes: () => kernel.operations.length + iptables.restores.length,
      damage() {
        const [server] = kernel.servers.keys();
        kernel.servers.delete(server!);
        kernel.elements.delete([...kernel.elements.keys()][0]!);
        kernel.bound.delete([...kernel.bound.keys()][0]!);
      },
      addForeign() {
        const address = parseIp(NODE[family]);
        const key = { kind: 'address', protocol: 6, address, port: 6443 } as const;
        kernel.servers.set(`${formatIp(address)}:6443/TCP`, {
          server: { key, scheduler: 'wrr', flags: 0, persistenceSeconds: 0 },
          destinations: new Map(),
        });
        const text =
          '*filter\n:FOREIGN - [0:0]\n-A FORWARD -j FOREIGN\n-A FOREIGN -p tcp -m tcp --dport 25 -j DROP\nCOMMIT\n';
        iptables.restoreAsOther(family, 'nft', text);
      },
      refuse(clusterIps) {
        const texts = new Set(clusterIps.map(formatIp));
        kernel.refuse = (operation) =>
          operation.kind === 'newServer' &&
          operation.virtual.key.kind === 'address' &&
          texts.has(formatIp(operation.virtual.key.address))
            ? 'EADDRNOTAVAIL'
            : undefined;
      },
      settle: () => clock.advance(2000),
    };
  },
});
