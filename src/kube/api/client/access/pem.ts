import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { errorText, readGivenFile } from '../../../../core/index.ts';

/** A certificate or key as a kubeconfig gives it: the path of a file, or its content in base64 (`client-key-data`). */
export interface PemSource {
  /** The kubeconfig's name of the file: `client-key`. */
  readonly field: string;
  readonly file: string | undefined;
  readonly base64: string | undefined;
}

/**
 * What must hold before any file is read.
 *
 * @throws an Error that names the field and the remedy
 */
export function checkPem({ field, file, base64 }: PemSource): void {
  if (base64 === undefined) return;
  if (file !== undefined)
    throw new Error(`${field} ("${file}") and ${field}-data are both given; take one of them out`);
  const text = base64.replace(/\s/g, '');
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text) || text.length % 4 !== 0) {
    const remedy = text.startsWith('-----BEGIN') ? 'it is PEM itself: encode it ("base64 -w0")' : 'copy it whole';
    throw new Error(`${field}-data is not base64 (it begins with "${text.slice(0, 10)}"); ${remedy}`);
  }
  const content = Buffer.from(base64, 'base64').toString('latin1');
  if (isPem(content)) return;
  const remedy = content.startsWith('LS0tLS') ? 'it was encoded twice: decode it once' : 'encode a file in PEM';
  throw new Error(`${field}-data holds no PEM ("-----BEGIN …"); ${remedy}`);
}

/**
 * The content; undefined when none is given.
 *
 * @throws an Error that names the field, the file and the remedy
 */
export function readPem({ field, file, base64 }: PemSource): Buffer | undefined {
  if (file === undefined) return base64 === undefined ? undefined : Buffer.from(base64, 'base64');
  let content: Buffer;
  try {
    content = readGivenFile(file);
  } catch (error) {
    const remedy = 'correct the path, or mount the file';
    throw new Error(`${field} "${file}" cannot be read (${errorText(error)}); ${remedy}`);
  }
  if (!isPem(content.toString('latin1'))) {
    throw new Error(`${field} "${file}" holds no PEM ("-----BEGIN …"); name a file in PEM`);
  }
  return content;
}

/** Why a client certificate and its key cannot be used together; undefined: they can. */
export function misfitOf(cert: Buffer, key: Buffer): string | undefined {
  try {
    createSecureContext({ cert, key });
    return undefined;
  } catch (error) {
    return `client-certificate and client-key do not belong together, or are damaged (${errorText(error)}); give a pair that was made as one`;
  }
}

/** When a certificate is out of its time at `now` (milliseconds since 1970): why it is refused, and the remedy. */
export function expiryOf(cert: string | Buffer, now: number): string | undefined {
  try {
    const { validFrom, validTo } = new X509Certificate(cert);
    if (now > Date.parse(validTo)) return `the client certificate has expired on ${validTo}; renew it`;
    if (now < Date.parse(validFrom)) {
      return `the client certificate is not valid before ${validFrom}; set the clock of this node, which says ${new Date(now).toISOString()}`;
    }
    return undefined;
  } catch {
    return undefined;
  }
}

function isPem(content: string): boolean {
  return content.includes('-----BEGIN ');
}
