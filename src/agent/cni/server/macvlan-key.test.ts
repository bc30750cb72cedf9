import { expect, it } from 'vitest';
import { makeNode } from '../../../../test/fakes/service-objects.ts';
import { parseCidr } from '../../../core/index.ts';
import type { ServiceCIDR } from '../../../kube/index.ts';
import { macvlanKey } from './macvlan-key.ts';
import { completeConfig, NO_RANGES } from './node-config.ts';

const settings = {
  namespaces: ['egress'],
  masters: ['default'],
  mode: 'private',
  ipam: undefined,
  routes: [parseCidr('10.244.0.0/16')],
} as const;
const node = makeNode('n1', {
  status: {
    addresses: [
      { type: 'Hostname', address: 'n1' },
      { type: 'InternalIP', address: '192.0.2.7' },
      { type: 'InternalIP', address: 'fd00::7' },
      { type: 'ExternalIP', address: '198.51.100.1' },
    ],
  },
});
const serviceCidr = (cidrs: string[]) => ({ kind: 'ServiceCIDR', spec: { cidrs } }) as unknown as ServiceCIDR;

it('adds the addresses of the node and the Service CIDRs to the routes', () => {
  const serviceCidrs = [serviceCidr(['10.96.0.0/12', 'fd00:96::/112']), serviceCidr(['10.200.0.0/16'])];
  expect(macvlanKey(settings, { node, serviceCidrs, isComplete: true })).toEqual({
    ...settings,
    routes: ['10.244.0.0/16', '192.0.2.7/32', 'fd00::7/128', '10.96.0.0/12', 'fd00:96::/112', '10.200.0.0/16'],
  });
});

it('says that the routes are not known before everything was told', () => {
  const key = macvlanKey(settings, { node: undefined, serviceCidrs: [], isComplete: false });
  expect(key).toMatchObject({ namespaces: ['egress'], routes: null });
});

it('is added to the configuration of its own network alone, which may say something else', () => {
  const macvlan = { network: 'pods', key: { namespaces: ['egress'] } };
  const completed = (config: object) =>
    JSON.parse(completeConfig(JSON.stringify(config), { ranges: NO_RANGES, dataDir: '/data', macvlan }).config);
  expect(completed({ name: 'pods' })).toEqual({ name: 'pods', dataDir: '/data', macvlan: macvlan.key });
  expect(completed({ name: 'other' })).toEqual({ name: 'other', dataDir: '/data' });
  expect(completed({ name: 'pods', macvlan: null })).toMatchObject({ macvlan: null });
});
