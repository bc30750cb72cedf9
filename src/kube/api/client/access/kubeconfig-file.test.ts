import { expect, it } from 'vitest';
import { directOptions, readKubeconfig } from './kubeconfig-file.ts';

const FILE = `
current-context: second
contexts:
- { name: first, context: { cluster: one, user: one } }
- { name: second, context: { cluster: two, user: two } }
clusters:
- { name: one, cluster: { server: "https://one:6443" } }
- name: two
  cluster:
    server: https://two:6443/
    certificate-authority: pki/ca.crt
    tls-server-name: kubernetes
    proxy-url: http://proxy:3128
users:
- { name: one, user: { token: of-one } }
- name: two
  user: { client-certificate: /etc/two.crt, client-key: two.key, username: two, password: 123456, as: somebody }
`;

it('reads what the current context names, paths relative to the file', () => {
  const { cluster, user } = readKubeconfig(FILE, '/etc/kubernetes');
  expect(cluster).toMatchObject({
    server: 'https://two:6443',
    caFile: '/etc/kubernetes/pki/ca.crt',
    tlsServerName: 'kubernetes',
    proxyUrl: 'http://proxy:3128',
    skipTLSVerify: false,
  });
  expect(user).toMatchObject({ certFile: '/etc/two.crt', keyFile: '/etc/kubernetes/two.key', password: '123456' });
  const withoutFiles = { ...user!, certFile: undefined, keyFile: undefined };
  expect(directOptions({ ...cluster!, caFile: undefined }, withoutFiles)).toEqual({
    auth: 'two:123456',
    servername: 'kubernetes',
    headers: { 'Impersonate-User': 'somebody' },
  });
});

it('knows who asks only if the context names a user', () => {
  expect(readKubeconfig(FILE.replace('cluster: two, user: two', 'cluster: two'), '/').user).toBeUndefined();
});

it.each([
  ['clusters: [{ cluster: {} }]', 'clusters[0].name is missing'],
  ['clusters: [{ name: c, cluster: {} }]', 'clusters[0].cluster.server is missing'],
  ['contexts: [{ name: c }]', 'contexts[0].context is missing'],
  ['users: [1]', 'users[0].name is missing'],
])('says of %s what is missing', (text, message) => {
  expect(() => readKubeconfig(text, '/')).toThrow(message);
});
