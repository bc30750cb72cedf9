import { testDataplane } from '../../../test/fakes/dataplane-suite.ts';
import { FakeIptables } from '../../../test/fakes/fake-iptables.ts';
import { isToHost, ruleDump } from '../../../test/fakes/iptables-dump.ts';
import { IptablesDataplane } from './dataplane.ts';

const FOREIGN = `*filter
:FOREIGN - [0:0]
:KUBE-FIREWALL - [0:0]
-A FORWARD -j FOREIGN
-A FOREIGN -p tcp -m tcp --dport 25 -j DROP
-A OUTPUT -j KUBE-FIREWALL
COMMIT
*nat
:FOREIGN-NAT - [0:0]
-A POSTROUTING -j FOREIGN-NAT
-A FOREIGN-NAT -o eth9 -j MASQUERADE
COMMIT
`;

testDataplane({
  isAtomic: true,
  make(family) {
    const iptables = new FakeIptables();
    return {
      start: () => new IptablesDataplane({ family, variant: 'nft', exec: iptables.exec }),
      dump: () => ruleDump(iptables, family),
      writes: () => iptables.restores.length,
      damage: () => iptables.restoreAsOther(family, 'nft', '*nat\n-F KUBE-SERVICES\nCOMMIT\n'),
      addForeign: () => iptables.restoreAsOther(family, 'nft', FOREIGN),
      refuse(clusterIps) {
        iptables.refuse = (line) => (isToHost(line, clusterIps) ? 'kernel' : undefined);
      },
    };
  },
});
