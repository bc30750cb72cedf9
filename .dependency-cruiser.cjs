// The import rules of docs/architecture.md. Imports point downwards only, and a folder is entered through its index.ts.

/** Which folders of src/ each folder may import, besides itself. */
const ALLOWED = {
  core: [],
  sys: ['core'],
  netlink: ['core', 'sys'],
  config: ['core'],
  kube: ['core'],
  'proxy/rules': ['core', 'sys', 'netlink', 'proxy'],
  'proxy/iptables': ['core', 'sys', 'netlink', 'proxy', 'proxy/rules'],
  'proxy/nftables': ['core', 'sys', 'netlink', 'proxy'],
  'proxy/ipvs': ['core', 'sys', 'netlink', 'proxy', 'proxy/rules'],
  proxy: ['core', 'kube'],
  ipam: ['core', 'sys'],
  cni: ['core', 'sys', 'netlink', 'ipam'],
  agent: [
    ...['core', 'config', 'sys', 'netlink', 'kube', 'ipam', 'cni'],
    ...['proxy', 'proxy/rules', 'proxy/iptables', 'proxy/nftables', 'proxy/ipvs'],
  ],
  cli: ['core', 'config', 'agent', 'cni'],
};

/** The files of one folder; `proxy` means the files directly in it, because its sub-folders have rules of their own. */
const files = (folder) => (folder === 'proxy' ? '^src/proxy/[^/]+$' : `^src/${folder}/`);

const direction = Object.entries(ALLOWED).map(([folder, allowed]) => ({
  name: `${folder.replace('/', '-')}-imports-downwards-only`,
  severity: 'error',
  from: { path: files(folder) },
  to: { path: '^(src|test|demo|bench)/', pathNot: [folder, ...allowed].map(files) },
}));

module.exports = {
  forbidden: [
    ...direction.map((rule) =>
      // Unit tests may use the fakes; only production code is held to the direction.
      ({ ...rule, from: { ...rule.from, pathNot: '\\.test\\.ts$' } }),
    ),
    {
      name: 'folders-are-entered-through-their-index',
      severity: 'error',
      from: { path: '^(src/(?:proxy/(?:rules|iptables|nftables|ipvs)|[^/]+)|test|demo|bench)/' },
      to: { path: '^src/(?:proxy/(?:rules|iptables|nftables|ipvs)|[^/]+)/', pathNot: ['^$1/', '/index\\.ts$'] },
    },
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
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
