import { expect, it } from 'vitest';
import { endpointChainName, hash16, serviceChainNames } from './names.ts';

// kube-proxy's own names, as a kube-proxy 1.36 wrote them.
it.each([
  ['ns4/svc4:p80', 'tcp', '4SW47YFZTEDKD3PK'],
  ['shop/web:http', 'tcp', '67NZLRHBNDSAWJRO'],
  ['shop/api', 'udp', 'GC6CRLUM7LAEZZYD'],
  ['demo/np:http', 'tcp', '4IIC76BHGSQBKXMN'],
])('names the chains of %s/%s as kube-proxy does', (name, protocol, hash) => {
  expect(serviceChainNames(name, protocol)).toEqual({
    cluster: `KUBE-SVC-${hash}`,
    local: `KUBE-SVL-${hash}`,
    external: `KUBE-EXT-${hash}`,
    firewall: `KUBE-FW-${hash}`,
  });
});

it.each([
  ['ns4/svc4:p80', '10.180.0.5:80', 'KUBE-SEP-C6EBXVWJJZMIWKLZ'],
  ['shop/web:http', '10.244.1.5:8080', 'KUBE-SEP-34ZZ2QFGO32YYXXO'],
  ['shop/web:http', '[fd00:10:244::5]:8080', 'KUBE-SEP-ZYZ4TMWXQVZDX5XC'],
])('names the chain of endpoint %s %s as kube-proxy does', (name, endpoint, chain) => {
  expect(endpointChainName(name, 'tcp', endpoint)).toBe(chain);
});

it('hashes into 16 letters of base32', () => {
  for (let i = 0; i < 200; i++) expect(hash16(String(i))).toMatch(/^[A-Z2-7]{16}$/);
});
