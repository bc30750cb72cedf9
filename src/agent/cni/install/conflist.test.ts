import { expect, it } from 'vitest';
import { parseCidr } from '../../../core/index.ts';
import { type ConflistNeeds, readConflist, standardConflist } from './conflist.ts';

it('has a list of its own that old and new runtimes can use, and that names nothing of the node', () => {
  const { network, text, statusConfig, letsPodsThrough } = standardConflist();
  expect({ network, letsPodsThrough }).toEqual({ network: 'nodeplane', letsPodsThrough: true });
  expect(JSON.parse(text)).toMatchObject({ cniVersion: '0.4.0', cniVersions: ['0.4.0', '1.0.0', '1.1.0'] });
  expect(JSON.parse(statusConfig)).toMatchObject({
    name: 'nodeplane',
    cniVersion: '1.1.0',
    type: 'nodeplane-cni',
    ipam: { type: 'nodeplane' },
  });
});

it('leaves masquerading to the agent where the agent does it', () => {
  const masquerades = (needs?: { ipMasq: boolean }) => JSON.parse(standardConflist(needs).text).plugins[0].ipMasq;
  expect([masquerades(), masquerades({ ipMasq: true }), masquerades({ ipMasq: false })]).toEqual([true, true, false]);
});

it('shows pods to those of other nodes where it masquerades each pod', () => {
  const nonMasqueradeCidrs = ['10.244.0.0/16', 'fd00::/48'].map(parseCidr);
  const exceptions = (needs: ConflistNeeds) => JSON.parse(standardConflist(needs).text).plugins[0].nonMasqueradeCidrs;
  expect(exceptions({ nonMasqueradeCidrs })).toEqual(['10.244.0.0/16', 'fd00::/48']);
  expect([exceptions({}), exceptions({ ipMasq: false, nonMasqueradeCidrs })]).toEqual([undefined, undefined]);
});

it('takes a list with other plugins beside ours as it is', () => {
  const text = '{"name":"n","cniVersion":"1.0.0","plugins":[{"type":"nodeplane-cni","mtu":9000},{"type":"tuning"}]}';
  const conflist = readConflist(text, '/c');
  expect(conflist).toMatchObject({ network: 'n', text: `${text}\n` });
  expect(JSON.parse(conflist.statusConfig)).toEqual({
    name: 'n',
    cniVersion: '1.1.0',
    type: 'nodeplane-cni',
    mtu: 9000,
  });
});

it('has the runtime pass the annotations of pods where they are needed, and asks that of a user’s list', () => {
  const capabilities = (needs?: { podAnnotations: boolean }) =>
    JSON.parse(standardConflist(needs).text).plugins[0].capabilities;
  expect(capabilities()).not.toHaveProperty(['io.kubernetes.cri.pod-annotations']);
  expect(capabilities({ podAnnotations: true })).toMatchObject({
    portMappings: true,
    'io.kubernetes.cri.pod-annotations': true,
  });
  const list = (of: object) =>
    JSON.stringify({ name: 'n', cniVersion: '1.0.0', plugins: [{ type: 'nodeplane-cni', ...of }] });
  const annotated = list({ capabilities: { 'io.kubernetes.cri.pod-annotations': true } });
  expect(readConflist(annotated, '/c', { podAnnotations: true }).network).toBe('n');
  for (const lacking of [{}, { capabilities: { mac: true } }]) {
    expect(() => readConflist(list(lacking), '/c', { podAnnotations: true })).toThrow(
      '--cni-macvlan-namespaces needs "io.kubernetes.cri.pod-annotations": true',
    );
  }
});

it.each([
  [{}, false],
  [{ firewall: true }, true],
  [{ firewall: false, ingressPolicy: 'isolated' }, false],
  [{ ingressPolicy: 'isolated' }, true],
])('tells whether its pods pass a chain FORWARD that drops: %j', (keys, passes) => {
  const list = { name: 'n', cniVersion: '1.0.0', plugins: [{ type: 'nodeplane-cni', ...keys }] };
  expect(readConflist(JSON.stringify(list), '/c').letsPodsThrough).toBe(passes);
});

it.each([
  ['{', 'it is no JSON'],
  ['null', '"name" is no name'],
  ['{"name":"../x"}', '"name" is no name'],
  ['{"name":"n"}', '"cniVersion" is missing'],
  ['{"name":"n","cniVersion":"1.0.0","plugins":[{"type":"bridge"},null]}', 'none of its plugins has the type'],
])('refuses %s', (text, why) => {
  expect(() => readConflist(text, '/c')).toThrow(expect.objectContaining({ code: 'ERR_CONFIG' }));
  expect(() => readConflist(text, '/c')).toThrow(`Cannot use "/c" as CNI configuration: ${why}`);
});
