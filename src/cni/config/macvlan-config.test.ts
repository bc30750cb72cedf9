import { describe, expect, it } from 'vitest';
import { formatCidr } from '../../core/index.ts';
import { MACVLAN_ANNOTATIONS, POD_ANNOTATIONS, parseMacvlan } from './macvlan-config.ts';

const [OWN, OPENSHIFT] = MACVLAN_ANNOTATIONS;
const POD = { namespace: 'egress', name: 'router-1' };
const KEY = { namespaces: ['egress'], masters: ['default', 'eth1'] };

function parse(annotations: unknown, key: object = {}, pod: typeof POD | undefined = POD) {
  return parseMacvlan({ macvlan: { ...KEY, ...key } }, { [POD_ANNOTATIONS]: annotations }, pod);
}

describe('who asks', () => {
  it.each([OWN, OPENSHIFT])('by annotation %s gets the first of the masters, or the one it names', (annotation) => {
    expect(parse({ [annotation]: 'true' })).toMatchObject({ master: 'default', mode: 'private', ipam: undefined });
    expect(parse({ [annotation]: 'eth1' })).toMatchObject({ master: 'eth1', allowedMasters: ['default', 'eth1'] });
  });

  it('by both is heard by our own', () => {
    expect(parse({ [OPENSHIFT]: 'true', [OWN]: 'eth1' })).toMatchObject({ master: 'eth1' });
    expect(parse({ [OPENSHIFT]: 'true', [OWN]: 'false' })).toBeUndefined();
  });

  it.each([[{}], [null], [undefined], [[]], ['x'], [{ [OWN]: 'false' }], [{ [OWN]: '' }], [{ [OWN]: 7 }]])(
    'does not with %j',
    (annotations) => {
      expect(parse(annotations)).toBeUndefined();
    },
  );

  it('of a network without the key gets nothing', () => {
    expect(parseMacvlan({}, { [POD_ANNOTATIONS]: { [OWN]: 'true' } }, POD)).toBeUndefined();
  });
});

describe('a pod is refused, with its name, the annotation and what is allowed', () => {
  const refusal = (text: string) => expect.objectContaining({ cniCode: 110, message: expect.stringContaining(text) });

  it('when its namespace is not on the list', () => {
    const other = { namespace: 'shop', name: 'web-1' };
    const ask = (namespaces: string[], pod?: typeof POD) => () => parse({ [OWN]: 'true' }, { namespaces }, pod);
    expect(ask(['egress', 'b'], other)).toThrow(
      refusal(
        'Pod "shop/web-1" asks for a macvlan by annotation nodeplane.io/assign-macvlan "true": only pods of these namespaces may: "egress", "b"',
      ),
    );
    expect(ask([], POD)).toThrow(refusal('only pods of these namespaces may: none'));
    expect(ask(['*'], other)).not.toThrow();
  });

  it('when the runtime does not say whose it is', () => {
    expect(() => parseMacvlan({ macvlan: KEY }, { [POD_ANNOTATIONS]: { [OWN]: 'true' } }, undefined)).toThrow(
      refusal('Pod "" asks'),
    );
  });

  it('when it names a link that may not be used, or no link', () => {
    expect(() => parse({ [OWN]: 'eth7' }, { masters: ['eth1', 'eth2'] })).toThrow(
      refusal('only these links may be used: "eth1", "eth2"'),
    );
    expect(() => parse({ [OWN]: 'a-name-that-is-too-long' })).toThrow(refusal('it is longer than 15 bytes'));
    expect(() => parse({ [OWN]: '../eth0' })).toThrow(refusal('"true" or the name of a link'));
    expect(() => parse({ [OWN]: 'x'.repeat(200_000) })).toThrow(
      expect.objectContaining({ message: expect.toSatisfy((text: string) => text.length < 1000) }),
    );
  });

  it('for now, while the routes it needs are not known', () => {
    expect(() => parse({ [OWN]: 'true' }, { routes: null })).toThrow(expect.objectContaining({ cniCode: 11 }));
    expect(parse({}, { routes: null })).toBeUndefined();
  });
});

it('takes mode, address management and routes from the configuration', () => {
  const settings = parse({ [OWN]: 'true' }, { mode: 'bridge', ipam: { type: 'dhcp' }, routes: ['10.96.0.0/12'] })!;
  expect(settings).toMatchObject({ mode: 'bridge', ipam: { type: 'dhcp' } });
  expect(settings.routes.map(formatCidr)).toEqual(['10.96.0.0/12']);
  expect(parse({ [OWN]: 'true' }, { ipam: {}, masters: [] })).toMatchObject({ ipam: undefined, master: 'default' });
});

it.each<[object, string]>([
  [{ namespaces: 'egress' }, 'macvlan.namespaces "egress": it must be a list of strings'],
  [{ masters: [1] }, 'macvlan.masters [1]'],
  [{ mode: 'passthru' }, 'macvlan.mode "passthru": it must be one of "private", "bridge", "vepa"'],
  [{ ipam: 'dhcp' }, 'macvlan.ipam "dhcp": it must be an object'],
  [{ ipam: { type: '../dhcp' } }, 'macvlan.ipam.type "../dhcp"'],
  [{ routes: ['10.96.0.0'] }, 'macvlan.routes[0] "10.96.0.0"'],
])('refuses %j also for pods that do not ask', (key, text) => {
  expect(() => parse({}, key)).toThrow(expect.objectContaining({ cniCode: 7, message: expect.stringContaining(text) }));
});
