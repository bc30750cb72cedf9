import type { IpFamily } from '../../../src/core/index.ts';

/** Addresses and words that differ between the families. */
const WORDS = {
  IPv4: { one: '10.1.2.3', two: '10.1.2.9', net: '10.1.0.0/16', odd: '10.0.0.1/255.0.0.255', type: 'icmp --icmp-type' },
  IPv6: {
    one: 'fd00::3',
    two: 'fd00::9',
    net: 'fd00:1::/32',
    odd: 'fd00::1/ffff::ffff',
    type: 'icmp6 --icmpv6-type',
  },
} as const;

/** Matches of each kind that is read, in each of its forms; for chains of table filter. */
function matches(family: IpFamily): readonly string[] {
  const { one, two, net, odd, type } = WORDS[family];
  const icmp = family === 'IPv4' ? 'icmp' : 'ipv6-icmp';
  return [
    `-s ${one} ! -d ${net}`,
    `-s ${odd}`,
    `! -s ${net} -d ${two}`,
    '-i eth0 ! -o cali+',
    '! -i veth0123456789+ -o lo',
    '-p tcp',
    '! -p udp',
    '-p 132',
    ...(family === 'IPv4' ? ['-f', '! -f -p 47'] : []),
    '-m comment --comment plain',
    '-m comment --comment "two words, \\"quotes\\" and a \\\\ -j DROP"',
    '-p tcp -m tcp --dport 80',
    '-p tcp -m tcp ! --sport 1024:65535 --dport :1023',
    '-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN',
    '-p tcp -m tcp ! --tcp-flags ALL NONE',
    '-p tcp -m tcp --tcp-option 8',
    '-p udp -m udp --sport 53 ! --dport 53:54',
    '-p sctp -m sctp --sport 7 ! --dport 1:5',
    '-p tcp -m multiport --dports 80,443,8000:8100',
    '-p tcp -m multiport ! --sports 1:2,3',
    '-p udp -m multiport --ports 53',
    '-m mark --mark 0x4000/0x4000',
    '-m mark ! --mark 0x1',
    '-m connmark --mark 0x20/0xf0',
    '-m connmark ! --mark 0x0/0xffff0000',
    '-m conntrack --ctstate RELATED,ESTABLISHED',
    '-m conntrack ! --ctstate INVALID,NEW,UNTRACKED,SNAT,DNAT',
    `-m conntrack --ctorigsrc ${net} ! --ctorigdst ${one} --ctreplsrc ${two} --ctrepldst ${net}`,
    '-p tcp -m conntrack --ctproto 6 --ctorigsrcport 1:65 ! --ctorigdstport 80 --ctreplsrcport 81 --ctrepldstport 7:9',
    '-m conntrack --ctstatus EXPECTED,SEEN_REPLY,ASSURED,CONFIRMED',
    '-m conntrack ! --ctstatus NONE --ctexpire 5:10',
    '-m conntrack --ctdir ORIGINAL',
    '-m conntrack --ctdir REPLY --ctexpire 7',
    '-m state --state NEW',
    '-m state ! --state INVALID,RELATED',
    '-m addrtype --dst-type LOCAL',
    '-m addrtype ! --src-type LOCAL ! --dst-type UNICAST --limit-iface-in',
    ...(family === 'IPv4' ? ['-m addrtype --src-type BLACKHOLE,PROHIBIT,MULTICAST,BROADCAST,ANYCAST'] : []),
    '-m statistic --mode random --probability 0.33333333349',
    '-m statistic --mode random ! --probability 0.5',
    '-m statistic --mode nth --every 3 --packet 1',
    '-m statistic --mode nth ! --every 4 --packet 0',
    '-m set --match-set one src',
    '-m set ! --match-set two dst,src',
    '-m physdev --physdev-is-in --physdev-in veth+',
    '-m physdev ! --physdev-in eth0 --physdev-is-bridged',
    '-m recent --set --name SEEN --rsource',
    '-m recent ! --rcheck --seconds 60 --hitcount 4 --name SEEN --rdest',
    '-m recent --update --seconds 10800 --reap --name KUBE-SEP-ABCDEFGH --rsource',
    '-m recent --remove --name other --rsource',
    '-m recent --rcheck --rttl --name ttl --rsource',
    `-m iprange --src-range ${one}-${two}`,
    `-m iprange ! --src-range ${one}-${two} --dst-range ${two}-${two}`,
    '-m limit --limit 5/min',
    '-m limit --limit 1/sec --limit-burst 2',
    '-m limit --limit 7/hour --limit-burst 100',
    `-p ${icmp} -m ${type} 3/4`,
    `-p ${icmp} -m ${type} 128`,
    `-p ${icmp} -m ${type.replace(' ', ' ! ')} 3`,
    ...(family === 'IPv6' ? ['-m hl --hl-eq 255', '-m hl ! --hl-eq 64', '-m hl --hl-lt 5', '-m hl --hl-gt 7'] : []),
    '-p tcp -m tcp --tcp-flags SYN,RST SYN -m tcpmss --mss 1400:1500',
    '-m pkttype --pkt-type broadcast',
    '-m pkttype ! --pkt-type unicast',
    '-p tcp -m comment --comment "three in a row" -m tcp --dport 80 -m mark --mark 0x1/0x1',
  ];
}

/** Targets of each kind that is read. */
function targets(family: IpFamily): Readonly<Record<string, readonly (readonly [chain: string, rule: string])[]>> {
  const { one, two } = WORDS[family];
  const with80 = family === 'IPv4' ? `${one}:80` : `[${one}]:80`;
  const refusals =
    family === 'IPv4'
      ? ['net-unreachable', 'host-unreachable', 'proto-unreachable', 'port-unreachable', 'net-prohibited']
          .concat('host-prohibited', 'admin-prohibited')
          .map((how) => `icmp-${how}`)
      : ['no-route', 'adm-prohibited', 'addr-unreachable', 'port-unreachable', 'policy-fail', 'reject-route'].map(
          (how) => `icmp6-${how}`,
        );
  return {
    raw: [
      ['PREROUTING', '-j CT --notrack'],
      ['PREROUTING', '-j NOTRACK'],
      ['OUTPUT', '-p tcp -m tcp --dport 1 -j TRACE'],
    ],
    mangle: [
      ['PREROUTING', '-j MARK --set-xmark 0x4000/0x4000'],
      ['PREROUTING', '-j MARK --set-xmark 0x0/0xffffffff'],
      ['PREROUTING', '-j CONNMARK --set-xmark 0x5/0xff'],
      ['INPUT', '-j CONNMARK --save-mark --nfmask 0xff --ctmask 0xff00'],
      ['INPUT', '-j CONNMARK --restore-mark --nfmask 0xffffffff --ctmask 0xffffffff'],
      ['FORWARD', '-p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu'],
      ['FORWARD', family === 'IPv4' ? '-j TTL --ttl-set 64' : '-j HL --hl-set 64'],
      ['POSTROUTING', '-p udp -j CHECKSUM --checksum-fill'],
      ['OUTPUT', '-j SET --map-set marks dst,dst --map-mark'],
      ['OUTPUT', '-j SET --add-set one src --exist'],
    ],
    nat: [
      ['PREROUTING', `-p tcp -j DNAT --to-destination ${with80}`],
      ['PREROUTING', `-j DNAT --to-destination ${one}`],
      ['PREROUTING', `-j DNAT --to-destination ${one}-${two} --persistent`],
      ['PREROUTING', '-p tcp -j DNAT --to-destination :8080-8090 --random'],
      ['OUTPUT', '-p tcp -j REDIRECT --to-ports 8080'],
      ['OUTPUT', '-p udp -j REDIRECT --to-ports 1-5 --random'],
      ['OUTPUT', '-j REDIRECT'],
      ['POSTROUTING', `-j SNAT --to-source ${one}`],
      ['POSTROUTING', `-p tcp -j SNAT --to-source ${with80}-90 --random-fully --persistent`],
      ['POSTROUTING', '-j MASQUERADE'],
      ['POSTROUTING', '-j MASQUERADE --random-fully'],
      ['POSTROUTING', '-p tcp -j MASQUERADE --to-ports 1024-65535 --random'],
      ['INPUT', `-j SNAT --to-source ${two}`],
    ],
    filter: [
      ...refusals.map((how) => ['INPUT', `-j REJECT --reject-with ${how}`] as const),
      ['INPUT', '-p tcp -j REJECT --reject-with tcp-reset'],
      ['INPUT', '-j LOG --log-prefix "lost: " --log-level 6 --log-uid'],
      ['INPUT', '-j NFLOG --nflog-group 3 --nflog-prefix x'],
      ['INPUT', '-j NFQUEUE --queue-num 7'],
      ['INPUT', '-j NFQUEUE --queue-balance 0:3 --queue-bypass'],
      ['INPUT', '-j NFQUEUE --queue-balance 4:5 --queue-cpu-fanout'],
      ['FORWARD', '-j ACCEPT'],
      ['FORWARD', '-j DROP'],
      ['FORWARD', '-j RETURN'],
      ['FORWARD', '-p tcp'],
      ['FORWARD', ''],
      ['FORWARD', '-j MATCHES'],
      ['FORWARD', `-s ${one} -g DOCKER-USER`],
      ['FORWARD', '-j DOCKER-ISOLATION-STAGE-1'],
      ['FORWARD', '-j INPUT_ZONES'],
      ['DOCKER-USER', '-j RETURN'],
      ['DOCKER-ISOLATION-STAGE-1', '-i docker0 ! -o docker0 -j DOCKER-USER'],
      ['DOCKER-ISOLATION-STAGE-1', '-j RETURN'],
      ['INPUT_ZONES', '-i eth0 -g DOCKER-USER'],
      ['INPUT_ZONES', '-m conntrack --ctstate RELATED,ESTABLISHED,DNAT -j ACCEPT'],
    ],
  };
}

/** One rule of each form that is read, in all tables, as input for iptables-restore. Sets `one`, `two` and `marks` must be there. */
export function everyForm(family: IpFamily): string {
  return Object.entries(targets(family))
    .map(([table, rules]) => {
      const all = [
        ...rules,
        ...(table === 'filter' ? matches(family).map((match) => ['MATCHES', `${match} -j ACCEPT`] as const) : []),
      ];
      const own = new Set(
        all.map(([chain]) => chain).filter((chain) => !/^(?:(?:PRE|POST)ROUTING|INPUT|OUTPUT|FORWARD)$/.test(chain)),
      );
      const policy = table === 'filter' ? [':FORWARD DROP'] : [];
      const lines = all.map(([chain, rule]) => `-A ${chain} ${rule}`.trim());
      return [`*${table}`, ...policy, ...[...own].map((chain) => `:${chain} -`), ...lines, 'COMMIT', ''].join('\n');
    })
    .join('');
}

/** What random rules have that is not read. */
export const UNREAD = /-m (?:ttl --ttl-gt|hl --hl-gt) 63 ?/g;
