import { describe, expect, it } from 'vitest';
import { readCommandLine } from '../command-line.ts';

const FILE = '/etc/kube-flannel/net-conf.json';

/** What becomes of `nodeplane agent` with this net-conf.json and these flags: settings, or what is wrong. */
function read(conf: unknown, ...flags: string[]) {
  const files: Record<string, string> = {
    [FILE]: typeof conf === 'string' ? conf : JSON.stringify(conf),
    '/config': `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clusterCIDR: 10.244.0.0/16
nodeplane: { routes: { vni: 5, flannel: { netConf: ${FILE} } } }
`,
  };
  const outcome = readCommandLine(flags, {
    program: 'nodeplane agent',
    version: '0',
    hostname: 'node-1',
    readFile(path) {
      if (files[path] === undefined) throw new Error(`ENOENT: no such file or directory, open '${path}'`);
      return files[path];
    },
  });
  if (!('config' in outcome)) return outcome.output.stderr;
  const { routes, effective } = outcome.config;
  return { ...routes, clusterCidr: effective.clusterCIDR };
}

const given = (conf: unknown, ...flags: string[]) => read(conf, '--routes-flannel-net-conf', FILE, ...flags);
const VXLAN = { Network: '10.244.0.0/16', Backend: { Type: 'vxlan' } };

describe('net-conf.json of flannel', () => {
  it('says the mode, the network of the pods, and flannel’s defaults for the rest', () => {
    expect(given(VXLAN)).toMatchObject({
      mode: 'vxlan',
      vni: 1,
      port: 8472,
      mtu: undefined,
      clusterCidr: '10.244.0.0/16',
    });
  });

  it('says everything about vxlan, dual stack', () => {
    const conf = {
      Network: '10.244.0.0/16',
      EnableIPv6: true,
      IPv6Network: 'fd00:10:244::/48',
      EnableNFTables: true,
      Backend: { Type: 'vxlan', VNI: 4096, Port: 4789, MTU: 1400, DirectRouting: true },
    };
    expect(given(conf)).toMatchObject({
      mode: 'auto',
      vni: 4096,
      port: 4789,
      mtu: 1350,
      clusterCidr: '10.244.0.0/16,fd00:10:244::/48',
    });
  });

  it('says host-gw, IPv6 alone, and port 0 for the kernel’s', () => {
    const conf = { EnableIPv4: false, EnableIPv6: true, IPv6Network: 'fd00::/48', Backend: { Type: 'host-gw' } };
    expect(given(conf)).toMatchObject({ mode: 'host-gw', clusterCidr: 'fd00::/48' });
    expect(given({ ...VXLAN, Backend: { Type: 'vxlan', Port: 0 } })).toMatchObject({ port: 8472 });
  });

  it('gives the subnet file its networks', () => {
    const read = given(VXLAN, '--routes-flannel-subnet-file', '/run/flannel/subnet.env');
    expect(read).toMatchObject({
      flannel: { subnetFile: '/run/flannel/subnet.env', networks: [{ prefixLength: 16 }] },
    });
  });

  it('agrees with what is said otherwise, if that is the same', () => {
    const flags = ['--routes', 'auto', '--routes-vni', '1', '--cluster-cidr', '10.244.0.0/16,fd00::/48'];
    expect(given(VXLAN, ...flags)).toMatchObject({ mode: 'auto', clusterCidr: '10.244.0.0/16,fd00::/48' });
  });

  it.each([
    [['--routes-vni', '2'], 'nodeplane.routes.vni (--routes-vni): is 2, but "VNI"', 'makes it 1'],
    [['--routes-port', '4789'], '--routes-port): is 4789, but "Port"', 'makes it 8472'],
    [['--routes', 'host-gw'], '--routes): is "host-gw", but "Type"', 'makes it "vxlan"'],
    [['--routes', 'none'], '--routes): is "none", but "Type"', 'makes it "vxlan"'],
    [['--cluster-cidr', '10.0.0.0/8'], '--cluster-cidr): is "10.0.0.0/8", but "Network"', 'makes it "10.244.0.0/16"'],
  ])('is contradicted by %j: an error', (flags, ...texts) => {
    const refusal = given(VXLAN, ...flags);
    for (const text of texts) expect(refusal).toContain(text);
  });

  it('is contradicted by the configuration file: an error', () => {
    expect(read(VXLAN, '--config', '/config')).toContain('nodeplane.routes.vni (--routes-vni): is 5');
    expect(read({ ...VXLAN, Backend: { Type: 'vxlan', VNI: 5 } }, '--config', '/config')).toMatchObject({ vni: 5 });
  });

  it.each([
    ['{', 'cannot be used'],
    ['[]', 'it holds no mapping'],
    [{ ...VXLAN, Backend: 'vxlan' }, '"Backend" is no mapping'],
    [{ ...VXLAN, Backend: { Type: 'udp' } }, 'nodeplane has no backend of "Type" "udp", but "vxlan" and "host-gw"'],
    [{ Network: '10.244.0.0/16' }, 'nodeplane has no backend of "Type" none'],
    [{ ...VXLAN, Backend: { Type: 'vxlan', GBP: true } }, 'group policy'],
    [{ ...VXLAN, Backend: { Type: 'vxlan', VNI: '1' } }, '"VNI" is "1", and no whole number'],
    [{ Backend: { Type: 'vxlan' } }, '"Network" is missing, and no IPv4 CIDR'],
    [{ ...VXLAN, EnableIPv4: false }, 'it enables neither IPv4 nor IPv6'],
    [{ ...VXLAN, EnableIPv6: true, IPv6Network: '10.0.0.0/8' }, '"IPv6Network" is "10.0.0.0/8", and no IPv6 CIDR'],
    [
      { ...VXLAN, Backend: { Type: 'vxlan', VNI: 2 ** 24 } },
      'nodeplane.routes.vni (--routes-vni): 16777216 is not within',
    ],
    [{ ...VXLAN, Backend: { Type: 'vxlan', MTU: 10 } }, 'nodeplane.routes.mtu (--routes-mtu): -40 is not within'],
  ])('%j is refused', (conf, text) => {
    expect(given(conf)).toContain(text);
  });

  it('that is not there is refused by name', () => {
    expect(read(VXLAN, '--routes-flannel-net-conf', '/nowhere')).toMatch(
      /--routes-flannel-net-conf\): "\/nowhere" cannot be used: .*ENOENT/,
    );
  });

  it('without it, the subnet file needs the cluster’s addresses', () => {
    const flags = ['--routes', 'vxlan', '--routes-flannel-subnet-file', '/run/flannel/subnet.env'];
    expect(read('', ...flags)).toContain('needs the addresses of all pods: give clusterCIDR (--cluster-cidr)');
    expect(read('', ...flags, '--cluster-cidr', '10.244.0.0/16')).toMatchObject({ mode: 'vxlan' });
  });
});
