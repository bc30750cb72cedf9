// What is in the image, as data: layer by layer, so that the one that changes most is the smallest.

/** By the name that images use (GOARCH): what the others call an architecture. */
export const ARCHITECTURES = {
  amd64: { node: 'x64', gnu: 'x86_64-linux-gnu', elfMachine: 0x3e },
  arm64: { node: 'arm64', gnu: 'aarch64-linux-gnu', elfMachine: 0xb7 },
};

/**
 * Debian 12's packages, and the files taken of each (patterns of tar, from the package's root): what Node.js, iptables in both
 * variants and modprobe need, and no shell. Every copyright file is taken besides.
 */
export const DEBIAN_PACKAGES = {
  'base-files': ['./usr/lib/os-release', './etc/os-release', './etc/debian_version'],
  netbase: ['./etc/protocols', './etc/services'],
  libc6: [
    './lib/*/ld-linux-*',
    './lib/ld-linux-*',
    './lib64/ld-linux-*',
    ...['c', 'm', 'dl', 'pthread', 'rt', 'resolv'].map((name) => `./lib/*/lib${name}.so.*`),
  ],
  // For its copyright file, which that of the next two is a link to.
  'gcc-12-base': [],
  'libgcc-s1': ['./lib/*/libgcc_s.so.*'],
  'libstdc++6': ['./usr/lib/*/libstdc++.so.*'],
  // The programs begin with `#!/usr/bin/env -S node …`.
  coreutils: ['./usr/bin/env'],
  iptables: ['./usr/sbin/*', './usr/lib/*/xtables'],
  libxtables12: ['./usr/lib/*/libxtables.so.*'],
  libip4tc2: ['./usr/lib/*/libip4tc.so.*'],
  libip6tc2: ['./usr/lib/*/libip6tc.so.*'],
  libmnl0: ['./usr/lib/*/libmnl.so.*'],
  libnftnl11: ['./usr/lib/*/libnftnl.so.*'],
  'libnetfilter-conntrack3': ['./usr/lib/*/libnetfilter_conntrack.so.*'],
  libnfnetlink0: ['./usr/lib/*/libnfnetlink.so.*'],
  kmod: ['./bin/kmod', './sbin/modprobe'],
  libkmod2: ['./lib/*/libkmod.so.*', './usr/lib/*/libkmod.so.*'],
  liblzma5: ['./lib/*/liblzma.so.*', './usr/lib/*/liblzma.so.*'],
  libzstd1: ['./usr/lib/*/libzstd.so.*'],
  libssl3: ['./usr/lib/*/libcrypto.so.*'],
};

/** Node.js, as the npm package of its own builds has it; `integrity` as npm writes it. */
export const NODE = {
  version: '24.21.0',
  integrity: {
    amd64: 'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
    arm64: 'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
  },
};

/** Of dist/: what runs in the image. The rest is for development. */
export const PROGRAMS = [
  'nodeplane',
  'nodeplane.code',
  'nodeplane-ask.code',
  'kube-proxy',
  'kube-proxy.code',
  'nodeplane-cni',
  'nodeplane-cni.code',
  'nodeplane-cni-shim',
  'cni-worker.js',
  'cni-worker.js.code',
  'client-node.js',
  'netlink-words.js',
  'koffi.node',
  'package.json',
];

/** Symbolic links that no package brings: a merged /usr, Debian's choice of iptables, and the programs' usual places. */
export const LINKS = {
  debian: {
    bin: 'usr/bin',
    sbin: 'usr/sbin',
    lib: 'usr/lib',
    lib64: 'usr/lib64',
    ...Object.fromEntries(
      ['iptables', 'ip6tables'].flatMap((program) =>
        ['', '-save', '-restore'].map((tool) => [`usr/sbin/${program}${tool}`, `${program}-nft${tool}`]),
      ),
    ),
  },
  nodeplane: Object.fromEntries(
    ['nodeplane', 'kube-proxy', 'nodeplane-cni'].map((name) => [`usr/local/bin/${name}`, `../lib/nodeplane/${name}`]),
  ),
};
