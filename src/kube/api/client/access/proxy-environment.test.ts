import { expect, it } from 'vitest';
import { proxyOf } from './proxy-environment.ts';

const PROXY = 'http://proxy:3128';
const isDirect = (server: string, noProxy: string) =>
  proxyOf(new URL(server), { HTTPS_PROXY: PROXY, NO_PROXY: noProxy }) === undefined;

it('takes the proxy of the scheme, by either spelling, and adds the scheme it lacks', () => {
  const server = new URL('https://10.0.0.1:6443');
  expect(proxyOf(server, { HTTPS_PROXY: PROXY, HTTP_PROXY: 'http://other' })).toBe(PROXY);
  expect(proxyOf(server, { https_proxy: 'proxy:3128' })).toBe(PROXY);
  expect(proxyOf(server, { HTTP_PROXY: PROXY })).toBeUndefined();
  expect(proxyOf(new URL('http://10.0.0.1'), { http_proxy: PROXY })).toBe(PROXY);
});

// What Go's httpproxy does of the same.
it.each([
  ['https://10.96.0.1', '10.96.0.0/12', true],
  ['https://10.112.0.1', '10.96.0.0/12', false],
  ['https://[fd00::1]:6443', 'example.com, fd00::/64', true],
  ['https://[fd00:1::1]:6443', 'fd00::/64', false],
  ['https://10.0.0.1:6443', '10.0.0.1', true],
  ['https://10.0.0.1:6443', '10.0.0.1:443', false],
  ['https://10.0.0.1', '10.0.0.1:443', true],
  ['https://[fd00::1]:6443', '[fd00::1]:6443', true],
  ['https://api.example.com', 'example.com', true],
  ['https://api.example.com', '.example.com', true],
  ['https://example.com', '.example.com', false],
  ['https://API.Example.com', '*.EXAMPLE.com', true],
  ['https://notexample.com', 'example.com', false],
  ['https://api.example.com:6443', 'example.com:6443', true],
  ['https://api.example.com:6443', 'example.com:443', false],
  ['https://10.0.0.1', '*', true],
  ['https://10.0.0.1', ' , ,', false],
  ['https://localhost:6443', '', true],
  ['https://127.0.0.2:6443', '', true],
  ['https://[::1]:6443', '', true],
])('%s with NO_PROXY=%j is reached directly: %s', (server, noProxy, direct) => {
  expect(isDirect(server, noProxy)).toBe(direct);
});
