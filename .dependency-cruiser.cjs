// The import rules of docs/architecture.md. Imports point downwards only, and a room is entered through its index.ts.

/**
 * Which rooms of src/ each room may import, besides itself. A room is a folder with an index.ts; `netlink`, `proxy` and
 * `agent` without more are the files directly in them.
 */
const ALLOWED = {
  core: [],
  sys: ['core'],
  'netlink/uapi': ['netlink'],
  netlink: ['core', 'sys', 'netlink/uapi'],
  'netlink/watch': ['core', 'netlink', 'netlink/uapi'],
  'netlink/route': ['core', 'sys', 'netlink', 'netlink/uapi', 'netlink/watch'],
  'netlink/ipvs': ['core', 'sys', 'netlink', 'netlink/uapi'],
  'netlink/nftables': ['core', 'sys', 'netlink', 'netlink/uapi', 'netlink/watch'],
  'netlink/conntrack': ['core', 'sys', 'netlink', 'netlink/uapi', 'netlink/watch'],
  'netlink/wireguard': ['core', 'sys', 'netlink', 'netlink/uapi'],
  'netlink/drop-monitor': ['core', 'netlink', 'netlink/uapi', 'netlink/watch'],
  'netlink/ipset': ['core', 'sys', 'netlink', 'netlink/uapi'],
  'netlink/log': ['core', 'netlink', 'netlink/uapi', 'netlink/watch'],
  'netlink/sock-diag': ['core', 'netlink', 'netlink/uapi'],
  'netlink/xfrm': ['core', 'netlink', 'netlink/uapi'],
  'netlink/words': ['core', 'netlink', 'netlink/uapi', 'netlink/nftables'],
  nft: ['core', 'netlink/uapi', 'netlink/nftables'],
  config: ['core'],
  kube: ['core'],
  'proxy/plan': ['core', 'kube'],
  'proxy/sync': ['core', 'kube', 'proxy/plan'],
  'proxy/observe': ['core', 'kube', 'proxy/plan', 'proxy/sync'],
  proxy: ['core', 'sys', 'kube', 'proxy/plan', 'proxy/sync', 'proxy/observe'],
  'proxy/rules': ['core', 'sys', 'proxy', 'netlink/nftables', 'nft'],
  'proxy/iptables': [
    'core',
    'sys',
    'proxy',
    'proxy/rules',
    'netlink',
    'netlink/conntrack',
    'netlink/nftables',
    'netlink/uapi',
  ],
  'proxy/nftables': ['core', 'sys', 'proxy', 'netlink', 'netlink/nftables', 'nft'],
  'proxy/ipvs': ['core', 'sys', 'kube', 'proxy', 'proxy/rules', 'netlink', 'netlink/*'],
  'proxy/localhost': ['core', 'kube', 'proxy', 'netlink', 'netlink/*', 'nft'],
  ipam: ['core', 'sys'],
  pools: ['core', 'kube'],
  cni: ['core', 'sys', 'ipam', 'netlink', 'netlink/*', 'nft'],
  routes: [
    'core',
    'sys',
    'kube',
    'netlink',
    'netlink/uapi',
    'netlink/route',
    'netlink/nftables',
    'netlink/wireguard',
    'nft',
  ],
  explain: ['core', 'sys', 'kube', 'proxy', 'proxy/plan', 'proxy/rules', 'netlink', 'netlink/*'],
  preflight: ['core', 'config', 'sys', 'netlink', 'netlink/*', 'kube', 'cni', 'proxy', 'proxy/*', 'routes'],
  agent: [
    'core',
    'config',
    'sys',
    'netlink',
    'netlink/*',
    'kube',
    'ipam',
    'cni',
    'proxy',
    'proxy/*',
    'routes',
    'pools',
    'preflight',
    'explain',
  ],
  cli: ['core', 'config', 'preflight', 'agent', 'cni', 'explain'],
};

const ROOMS = Object.keys(ALLOWED).sort((a, b) => b.length - a.length);
/** The folders that have rooms inside and files of their own. */
const HOUSES = ['netlink', 'proxy'];
const files = (room) =>
  HOUSES.includes(room) ? `^src/${room}/[^/]+$` : room.endsWith('/*') ? `^src/${room.slice(0, -1)}` : `^src/${room}/`;
const anyRoom = `src/(?:${ROOMS.filter((room) => room.includes('/')).join('|')}|[^/]+)`;

const direction = Object.entries(ALLOWED).map(([room, allowed]) => ({
  name: `${room.replace('/', '-')}-imports-downwards-only`,
  severity: 'error',
  // Unit tests may use the fakes; only production code is held to the direction.
  from: { path: files(room), pathNot: '\\.test\\.ts$' },
  to: { path: '^(src|test|demo|bench)/', pathNot: [room, ...allowed].map(files) },
}));

module.exports = {
  forbidden: [
    ...direction,
    {
      name: 'rooms-are-entered-through-their-index',
      severity: 'error',
      from: { path: `^(${anyRoom}|test|demo|bench)/` },
      to: { path: `^${anyRoom}/`, pathNot: ['^$1/', '/index\\.ts$', '^src/netlink/uapi/', '^src/netlink/[^/]+$'] },
    },
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'ffi-in-one-file',
      severity: 'error',
      comment: 'Node will bring an FFI of its own: one file to change then.',
      from: { pathNot: '^src/sys/libc\\.ts$' },
      to: { path: 'koffi' },
    },
    {
      name: 'the-plugin-starts-small',
      severity: 'error',
      comment: 'Every kilobyte on the CNI path costs start time: built-ins only.',
      from: { path: '^src/(cni|ipam|netlink|sys|core)/', pathNot: '\\.test\\.ts$' },
      to: { dependencyTypes: ['npm', 'npm-dev'], pathNot: 'node_modules/koffi/' },
    },
    {
      name: 'everything-is-declared',
      severity: 'error',
      from: { path: '^src/', pathNot: '\\.test\\.ts$' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'unknown'] },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'require', 'node', 'default'] },
  },
};
