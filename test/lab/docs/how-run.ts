import { shellLine } from '../../documents/commands.ts';

/**
 * What is there when a command is run, in the order in which it is gone through: an agent in mode iptables with WireGuard, one
 * in mode nftables with VXLAN, what that one left, and then what cleans that up.
 */
export const STAGES = ['iptables', 'nftables', 'stopped', 'cleanup'] as const;
export type Stage = (typeof STAGES)[number];

/** How a documented line is run, or why it is not. */
export type How =
  | { readonly kind: 'run'; readonly stage: Stage; readonly line: string; readonly may: Ending }
  | { readonly kind: 'left out'; readonly reason: string };

/** How a command may end by its documentation. */
export interface Ending {
  readonly exits: readonly number[];
  /** What standard error has to say. @default nothing in particular */
  readonly saying?: RegExp;
}

const WELL: Ending = { exits: [0] };
/** 2: something is wrong with what was looked at, which is told. */
const WITH_PROBLEMS: Ending = { exits: [0, 2] };
/** No API server answers kubectl here, which it says once it has understood its command line. */
const NO_SERVER: Ending = { exits: [1], saying: /connection to the server .* was refused/ };

/** Commands that are not run, with the reason. */
const LEFT_OUT: readonly (readonly [RegExp, string])[] = [
  [/^npm /, 'builds, tests or measures, for minutes'],
  [/^deploy\/image\/build /, 'test/cri/image.test.ts does it'],
  [/^(?:ctr|podman|docker|skopeo) /, 'takes the image: test/cri/image.test.ts'],
  [/^kubeadm /, 'makes a cluster or changes one'],
  [
    /^kubectl .*my-[a-z-]+$|^mkdir my-cluster$|^cat >my-cluster/,
    'the folder is the reader’s; test/deploy/documented.test.ts makes such',
  ],
  [/^ipvsadm |^ipset |kube-ipvs0$|^sysctl (?:-w )?net\.ipv4\.vs\./, 'needs a kernel with IPVS: test/vm'],
  [/^modprobe /, 'changes the kernel of the machine'],
  [/^wg /, 'a program of wireguard-tools, which the tests go without'],
  [/nodeplane-wg$/, 'needs a kernel with WireGuard: test/lab/routes/wireguard.test.ts'],
  [/nodelocaldns$|^iptables-save -t raw/, 'of NodeLocal DNSCache: test/lab/explain/neighbours.test.ts'],
  [/^tailscale |169\.254\.20\.10/, 'of others: test/lab/explain/neighbours.test.ts'],
  [/flannel|FLANNEL/, 'of flannel: test/lab/routes/flannel.test.ts'],
  [/^ip netns add x$|^CNI_COMMAND=/, 'has a fixed name on the machine: test/lab/cni/attach.test.ts does the same'],
  [/^nft -f$|^nft flush ruleset$/, 'is named as what others do'],
];

/** Commands that are named without what they are about: they are to know their own help. */
const NAMED =
  /^(?:(?:dist\/)?nodeplane (?:agent|trace|explain(?: --probe)?)|kubectl (?:kustomize|exec|port-forward|annotate|logs --previous|describe node|rollout (?:undo|status)))$/;

interface Rule {
  readonly fits: RegExp;
  readonly stage?: Stage;
  readonly may?: Ending;
  /** The line that is run for it, where it cannot be as it stands. */
  readonly as?: (line: string) => string;
}

/** The first that fits counts. */
const RULES: readonly Rule[] = [
  { fits: NAMED, as: (line) => `${line} --help` },
  { fits: /^\S*nodeplane agent --help$/ },
  { fits: /^nodeplane agent --manifests$/, as: (line) => `${line} ./manifests --write-config-to written.conf` },
  // An agent does not end by itself, and is what all others here ask.
  { fits: /^\S*nodeplane agent /, as: (line) => `${line} --write-config-to written.conf` },
  { fits: /^nodeplane (?:preflight|migration)$/, as: (line) => `${line} AGENT_FLAGS`, may: { exits: [0, 1] } },
  { fits: /^nodeplane preflight /, may: { exits: [0, 1] } },
  { fits: /^nodeplane ipam/, as: (line) => `${line} AGENT_FLAGS`, may: WITH_PROBLEMS },
  { fits: /^nodeplane (?:status|services|routes)/, may: WITH_PROBLEMS },
  { fits: /^nodeplane explain /, may: { exits: [0, 1, 2] } },
  // 1: there was none.
  { fits: /^conntrack -D /, may: { exits: [0, 1] } },
  { fits: /^nodeplane trace .*shop\/dns/, as: (line) => `${line} --live 1s`, may: WITH_PROBLEMS },
  // 1: a busy machine may lose one of the connections it watches.
  { fits: /^nodeplane trace/, may: { exits: [0, 1] } },
  { fits: /^nodeplane diff/ },
  { fits: /^\S*nodeplane cleanup --dry-run$/, stage: 'stopped' },
  {
    fits: /cleanup --leave-kube-proxy$/,
    stage: 'cleanup',
    may: { exits: [1], saying: /kube-proxy, which has no rules here/ },
  },
  {
    fits: /^\S*nodeplane cleanup --cni/,
    stage: 'cleanup',
    as: (line) => `${line.replace(' --force', '')} --force CLEANUP_FLAGS`,
  },
  { fits: /^\S*nodeplane cleanup/, stage: 'cleanup' },
  {
    fits: /^kubectl (?:apply|delete) .*-k deploy\//,
    as: (line) => line.replace(/ (?:apply|delete) .*-k/, ' kustomize'),
  },
  { fits: /^kubectl /, may: NO_SERVER },
  { fits: /^nft delete table /, stage: 'stopped' },
  // What a clean-up leaves.
  {
    fits: /^ip link delete cni0$|^sysctl -w /,
    stage: 'cleanup',
    as: (line) => line.replace('conf.NAME.', 'conf.lo.'),
  },
  { fits: /^nft monitor trace$/, as: (line) => `timeout 1 ${line}`, may: { exits: [124] } },
  { fits: /^nft -a list chain …$/, as: () => 'nft -a list chain ip nodeplane services' },
  { fits: /^nft list map$/, as: () => 'nft list map ip nodeplane endpoints' },
  { fits: /encrypted-only/, stage: 'iptables' },
  { fits: /^iptables/, stage: 'iptables' },
  { fits: /^(?:curl|nft|ip|bridge|conntrack|sysctl|ss|nstat|cat) / },
];

/** How a documented line is run; undefined: nobody has said. */
export function howToRun(text: string): How | undefined {
  const line = shellLine(text);
  const reason = LEFT_OUT.find(([fits]) => fits.test(line))?.[1];
  if (reason !== undefined) return { kind: 'left out', reason };
  const rule = RULES.find(({ fits }) => fits.test(line));
  if (!rule) return undefined;
  return {
    kind: 'run',
    stage: rule.stage ?? 'nftables',
    line: rule.as ? rule.as(line) : line,
    may: rule.may ?? WELL,
  };
}
