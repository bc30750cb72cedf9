import { expect, it } from 'vitest';
import { samplePort } from '../../../../test/samples/sample-plan.ts';
import { atOnce } from '../../../core/index.ts';
import { indexServices } from './service-index.ts';

const ports = [
  samplePort({ name: 'shop/web:http', clusterIp: '10.96.0.10', remote: ['10.244.2.5:8080'] }),
  samplePort({ name: 'shop/cart:http', clusterIp: '10.96.0.20', remote: ['10.244.2.6:8080'] }),
  samplePort({ name: 'shop/mail:http', clusterIp: '10.96.0.30', remote: ['10.244.2.6:8080'] }),
];
const family = { family: 'IPv4', ports: new Map(ports.map((port) => [port.key, port])), record: undefined } as const;

it.each([
  ['10.96.0.20', ['shop/cart']],
  ['10.244.2.6', ['shop/cart', 'shop/mail']],
  ['10.96.0.10,10.96.0.30', ['shop/mail', 'shop/web']],
  ['car,10.96.0.10', ['shop/cart', 'shop/web']],
  ['10.96.0.99,', []],
])('finds %s', (query, names) => {
  expect(atOnce(indexServices([family], { query, page: 1 })).names).toEqual(names);
});
