import type { RequestOptions } from 'node:https';
import { expiryOf } from './pem.ts';

/** What a certificate authority that has not signed the server's certificate leads to (OpenSSL's X509_V_ERR_…, as Node names them). */
const FOREIGN_AUTHORITY = new Set([
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** What was asked, and with what. */
export interface Asked {
  /** Where server and credentials are written, in words. */
  readonly source: string;
  readonly server: URL;
  readonly options: RequestOptions;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** What to correct when a request failed with `error`; empty: it is not known to be a mistake of the configuration. */
export function remedyOfFailure(error: unknown, { source, server, now }: Asked): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (FOREIGN_AUTHORITY.has(code)) {
    return `; the certificate authority of ${source} has not signed this server’s certificate: put the cluster’s own into clusters[].cluster.certificate-authority-data, or correct the address`;
  }
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') {
    return `; this node’s clock says ${new Date(now).toISOString()}: set it, or renew the server’s certificate`;
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return `; give ${source} a name or address that the certificate has, or name one as clusters[].cluster.tls-server-name`;
  }
  if (code.startsWith('ERR_OSSL_')) {
    return `; client-certificate and client-key of ${source} do not belong together, or one is damaged: give a pair that was made as one`;
  }
  if (server.protocol === 'https:' && (code === 'EPROTO' || code.startsWith('ERR_SSL_'))) {
    return saysAlert(error)
      ? `; the server does not take the client certificate of ${source}: renew it, or have it signed by the cluster’s authority`
      : `; ${server.host} does not answer in TLS: write its port of HTTPS, or http:// in ${source}`;
  }
  return '';
}

/** What to correct when the server answered with `status`; empty: nothing is known. */
export function remedyOfStatus(status: number, { source, options, server, now }: Asked): string {
  if (status === 400 && server.protocol === 'http:') return `; a server that wants TLS is at https:// in ${source}`;
  if (status !== 401) return '';
  const { cert, auth, headers } = options;
  const hasToken = headers !== undefined && 'Authorization' in headers;
  if (!cert && !hasToken && !auth) {
    return `; ${source} gives neither token nor client certificate: name a user in its current context`;
  }
  const expiry = typeof cert === 'string' || Buffer.isBuffer(cert) ? expiryOf(cert, now) : undefined;
  return expiry === undefined ? '' : `; ${expiry}`;
}

/** What to correct when the answer is none of an API server. */
export function remedyOfContent({ source, server }: Pick<Asked, 'source' | 'server'>): string {
  return `, which no API server sends: something in between answers in its place, as a proxy does that wants a login; look at the address and proxy-url in ${source}, and whether NO_PROXY has ${server.hostname}`;
}

function saysAlert(error: unknown): boolean {
  return error instanceof Error && /alert/i.test(`${error.message} ${'code' in error ? error.code : ''}`);
}
