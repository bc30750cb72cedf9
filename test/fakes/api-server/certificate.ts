import { execFileSync } from 'node:child_process';

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** Makes a certificate that signs itself, for a day, with `openssl`; it serves as its own authority. */
export function makeCertificate(addresses: readonly string[] = ['127.0.0.1', '::1']): Certificate {
  const names = ['DNS:localhost', ...addresses.map((address) => `IP:${address}`)].join(',');
  const pem = execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1'],
      ...['-subj', '/CN=fake-api-server', '-addext', `subjectAltName=${names}`, '-keyout', '-', '-out', '-'],
    ],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
  );
  const [key = '', cert = ''] = pem.split(/(?=-----BEGIN CERTIFICATE-----)/);
  return { cert, key };
}
