import { describe, expect, it } from 'vitest';
import { decodeConfigFile } from './config-file.ts';
import { API_VERSION, KIND } from './schema.ts';

const HEAD = `apiVersion: ${API_VERSION}\nkind: ${KIND}\n`;
const decode = (body: string) => decodeConfigFile(HEAD + body, 'kube-proxy');

describe('decodeConfigFile', () => {
  it('reads the fields that are there and no others', () => {
    const { given, strictProblems, furtherDocuments } = decode(
      'mode: ipvs\nipvs:\n  excludeCIDRs: [10.0.0.0/8]\n  syncPeriod: 1m\nconntrack: null\nclusterCIDR: ~\niptables: {}\n',
    );
    expect(given).toEqual({ mode: 'ipvs', ipvs: { excludeCIDRs: ['10.0.0.0/8'], syncPeriod: 60_000 }, iptables: {} });
    expect(strictProblems).toEqual([]);
    expect(furtherDocuments).toBe(0);
  });

  it('reads JSON', () => {
    const json = JSON.stringify({ kind: KIND, apiVersion: API_VERSION, oomScoreAdj: -5, bindAddress: '::' });
    expect(decodeConfigFile(json, 'kube-proxy').given).toEqual({ oomScoreAdj: -5, bindAddress: '::' });
  });

  it('reads YAML as Kubernetes does: 1.1, but without dates and base 60', () => {
    const { given } = decode(
      'enableProfiling: yes\nconntrack: {min: 010}\nhostnameOverride: 2020-01-01\nportRange: 10:20\n',
    );
    expect(given).toEqual({
      enableProfiling: true,
      conntrack: { min: 8 },
      hostnameOverride: '2020-01-01',
      portRange: '10:20',
    });
  });

  it('collects unknown fields and duplicate keys, and uses the rest; the later duplicate wins', () => {
    const { given, strictProblems } = decode(
      'mode: ipvs\nMode: x\niptables: {bit: 3}\nmode: nftables\nnodeplane: {}\n',
    );
    expect(given).toEqual({ mode: 'nftables', iptables: {} });
    expect(strictProblems).toEqual([
      'unknown field "Mode" (did you mean "mode"?)',
      'unknown field "iptables.bit"',
      'unknown field "nodeplane"',
      'key "mode" already set in map (line 6)',
    ]);
  });

  it('knows our section only as nodeplane agent', () => {
    const { given, strictProblems } = decodeConfigFile(`${HEAD}nodeplane: {logLevel: warn, x: 1}\n`, 'nodeplane agent');
    expect(given).toEqual({ nodeplane: { logLevel: 'warn' } });
    expect(strictProblems).toEqual(['unknown field "nodeplane.x"']);
  });

  it('is not led astray by names that every object has', () => {
    const { strictProblems } = decode('toString: 1\n__proto__: {mode: ipvs}\nconstructor: {}\n');
    expect(strictProblems).toEqual([
      'unknown field "toString"',
      'unknown field "__proto__"',
      'unknown field "constructor"',
    ]);
  });

  it('reads only the first document and says so', () => {
    const { given, furtherDocuments } = decode('mode: ipvs\n---\nmode: nftables\n---\n{}\n');
    expect(given).toEqual({ mode: 'ipvs' });
    expect(furtherDocuments).toBe(2);
  });

  it('names every value of the wrong type', () => {
    expect(() => decode('mode: 3\niptables: {syncPeriod: 30}\nipvs: fast\nnodePortAddresses: primary\n')).toThrow(
      'failed to decode: mode: expected text, found 3; ' +
        'iptables.syncPeriod: expected a duration such as 500ms, 30s or 1m30s, found 30; ' +
        'ipvs: expected a section with fields, found "fast"; ' +
        'nodePortAddresses: expected a list of texts, found "primary"',
    );
  });

  it.each([
    ['nothing', '', /holds no mapping/],
    ['a list', '- 1\n', /holds no mapping/],
    ['no kind', `apiVersion: ${API_VERSION}\n`, /holds kind nothing of apiVersion "kubeproxy/],
    ['another kind', `apiVersion: ${API_VERSION}\nkind: KubeletConfiguration\n`, /kind "KubeletConfiguration"/],
    [
      'another version',
      `apiVersion: kubeproxy.config.k8s.io/v1\nkind: ${KIND}\n`,
      /apiVersion "kubeproxy.config.k8s.io\/v1"/,
    ],
    ['an address of colons without quotes', `${HEAD}bindAddress: ::\n`, /line 3/],
    ['broken YAML', `${HEAD}a: [1\n`, /line \d/],
    ['an alias of nothing', `${HEAD}mode: *x\n`, /alias/i],
  ])('refuses %s', (_, source, message) => {
    expect(() => decodeConfigFile(source, 'kube-proxy')).toThrow(expect.objectContaining({ code: 'ERR_CONFIG' }));
    expect(() => decodeConfigFile(source, 'kube-proxy')).toThrow(message);
    expect(() => decodeConfigFile(source, 'kube-proxy')).toThrow(/^failed to decode: /);
  });
});
