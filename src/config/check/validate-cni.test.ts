import { describe, expect, it } from 'vitest';
import { formatCidr } from '../../core/index.ts';
import { ALL_FIELDS } from '../file/schema.ts';
import { Problems } from '../problems.ts';
import { readCni } from './validate-cni.ts';

type Section = Parameters<typeof readCni>[0];
type Macvlan = Partial<Section['macvlan']>;

const { cni } = ALL_FIELDS.nodeplane;

function read(macvlan: Macvlan, change: Partial<Section> = {}) {
  const fallbacks = (section: object) =>
    Object.fromEntries(Object.entries(section).map(([name, field]) => [name, field.fallback]));
  const problems = new Problems();
  const section = { ...fallbacks(cni), enabled: true, macvlan: { ...fallbacks(cni.macvlan), ...macvlan }, ...change };
  const settings = readCni(section as Section, problems);
  return { settings, problems: problems.found.map(({ path, message }) => `${path}: ${message}`) };
}

describe('macvlan0', () => {
  it('is off by default, and without a namespace whatever else is said', () => {
    expect(read({})).toMatchObject({ settings: { macvlan: undefined }, problems: [] });
    expect(read({ masters: ['eth1'], ipam: '{"type":"dhcp"}' })).toMatchObject({ settings: { macvlan: undefined } });
  });

  it('is on the default route’s interface, private, without addresses, when only namespaces are given', () => {
    const { settings, problems } = read({ namespaces: ['egress', '*'] });
    expect(problems).toEqual([]);
    expect(settings!.macvlan).toEqual({
      namespaces: ['egress', '*'],
      masters: ['default'],
      mode: 'private',
      ipam: undefined,
      routes: [],
    });
  });

  it('takes the configuration of an IPAM plugin, and routes', () => {
    const { settings } = read({ namespaces: ['a'], ipam: '{"type":"dhcp","x":1}', routes: ['10.244.0.0/16'] });
    expect(settings!.macvlan).toMatchObject({ ipam: { type: 'dhcp', x: 1 } });
    expect(settings!.macvlan!.routes.map(formatCidr)).toEqual(['10.244.0.0/16']);
  });

  it.each<[Macvlan, string]>([
    [{ namespaces: ['Egress'] }, 'namespaces: "Egress" is no name of a namespace, and not "*"'],
    [{ namespaces: ['eg*'] }, 'namespaces: "eg*" is no name'],
    [{ masters: ['a-name-that-is-too-long'] }, 'masters: "a-name-that-is-too-long" is no name of an interface'],
    [{ masters: [''] }, 'masters: "" is no name of an interface'],
    [{ mode: 'passthru' }, 'mode: "passthru" is none of "private", "bridge", "vepa"'],
    [{ ipam: 'dhcp' }, 'ipam: "dhcp" is no JSON object with a "type", such as {"type":"dhcp"}'],
    [{ ipam: 'null' }, 'ipam: "null" is no JSON object'],
    [{ ipam: '{"type":"../dhcp"}' }, 'is no JSON object with a "type"'],
    [{ routes: ['10.96.0.1'] }, 'routes: "10.96.0.1" is not a CIDR'],
  ])('refuses %j', (macvlan, text) => {
    const { problems } = read({ namespaces: ['a'], ...macvlan });
    expect(problems).toEqual([expect.stringContaining(`nodeplane.cni.macvlan.`)]);
    expect(problems[0]).toContain(text);
  });
});

it('nothing is looked at where the agent has nothing to do with pods', () => {
  expect(read({ mode: 'passthru' }, { enabled: false })).toEqual({ settings: undefined, problems: [] });
});
