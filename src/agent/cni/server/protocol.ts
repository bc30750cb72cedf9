import { type Environment, NEWEST_VERSION } from '../../../cni/index.ts';
import { NodeplaneError } from '../../../core/index.ts';

// The protocol between the plugin on the host (src/cni/shim/nodeplane-cni.c) and the agent: one request and one answer on
// a connection. Numbers are little-endian.
//
// request   "NPCQ"  u16 version = 1  u16 flags  u32 length of the variables  u32 length of the configuration
//           The namespace's descriptor comes as SCM_RIGHTS with these 16 bytes, if flag 1 is set. Behind them:
//           the variables, each `NAME=value` and a NUL; the configuration as it came on standard input
// answer    "NPCA"  u16 version = 1  u16 exit status  u32 length of the text; behind them the text for standard output

export const REQUEST_HEADER_LENGTH = 16;
export const LARGEST_VARIABLES = 1 << 18;
export const LARGEST_CONFIG = 2 << 20;
export const LARGEST_ANSWER = 1 << 20;
const REQUEST_MAGIC = 'NPCQ';
const ANSWER_MAGIC = 'NPCA';
const VERSION = 1;
const HAS_DESCRIPTOR = 1;

/** What the first bytes of a request announce. Lengths in bytes. */
export interface RequestHeader {
  readonly hasDescriptor: boolean;
  readonly variablesLength: number;
  readonly configLength: number;
}

/** A request as it came, its configuration not looked into. */
export interface PluginRequest {
  /** CNI_ variables. */
  readonly environment: Environment;
  /** What the runtime wrote to the plugin's standard input. */
  readonly config: string;
}

/** What the plugin prints and exits with. */
export interface PluginAnswer {
  readonly exitCode: 0 | 1;
  readonly stdout: string;
}

/** @throws ERR_CNI_REQUEST when they are no header of a request this agent can read */
export function decodeHeader(bytes: Uint8Array): RequestHeader {
  if (bytes.length !== REQUEST_HEADER_LENGTH) throw unreadable(`its header has ${bytes.length} bytes`);
  const header = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (header.toString('latin1', 0, 4) !== REQUEST_MAGIC) throw unreadable('it does not begin as one');
  const version = header.readUInt16LE(4);
  if (version !== VERSION) throw unreadable(`it has version ${version} of the protocol, known is ${VERSION}`);
  const [variablesLength, configLength] = [header.readUInt32LE(8), header.readUInt32LE(12)];
  if (variablesLength > LARGEST_VARIABLES || configLength > LARGEST_CONFIG) {
    throw unreadable(`${variablesLength} bytes of variables and ${configLength} of configuration are too many`);
  }
  return { hasDescriptor: (header.readUInt16LE(6) & HAS_DESCRIPTOR) !== 0, variablesLength, configLength };
}

/** Decodes what follows the header. Throws ERR_CNI_REQUEST. */
export function decodeBody({ variablesLength, configLength }: RequestHeader, body: Uint8Array): PluginRequest {
  if (body.length !== variablesLength + configLength) throw unreadable(`its body has ${body.length} bytes`);
  const text = decodeUtf8(body.subarray(0, variablesLength));
  if (text !== '' && !text.endsWith('\0')) throw unreadable('its last variable does not end');
  const environment: Record<string, string> = Object.create(null);
  for (const entry of text.split('\0').slice(0, -1)) {
    const [, name, value = ''] = /^(CNI_\w+)=(.*)$/s.exec(entry) ?? [];
    if (name === undefined) throw unreadable(`"${entry.slice(0, 40)}" is no CNI_ variable`);
    // As getenv(3): the first one counts.
    environment[name] ??= value;
  }
  return { environment, config: decodeUtf8(body.subarray(variablesLength)) };
}

/** A whole request without descriptor, as the plugin keeps it for later. Throws ERR_CNI_REQUEST. */
export function decodeKeptRequest(bytes: Uint8Array): PluginRequest {
  const header = decodeHeader(bytes.subarray(0, REQUEST_HEADER_LENGTH));
  return decodeBody(header, bytes.subarray(REQUEST_HEADER_LENGTH));
}

/** The bytes of an answer: a header with exit code and length, then the text for stdout. */
export function encodeAnswer({ exitCode, stdout }: PluginAnswer): Buffer {
  const text = Buffer.from(stdout);
  const header = Buffer.alloc(12);
  header.write(ANSWER_MAGIC, 0, 'latin1');
  header.writeUInt16LE(VERSION, 4);
  header.writeUInt16LE(exitCode, 6);
  header.writeUInt32LE(text.length, 8);
  return Buffer.concat([header, text]);
}

/** The answer that is an error object of the CNI specification. */
export function refusal(code: number, msg: string, details = ''): PluginAnswer {
  const error = { cniVersion: NEWEST_VERSION, code, msg, ...(details && { details }) };
  return { exitCode: 1, stdout: `${JSON.stringify(error)}\n` };
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new NodeplaneError('ERR_CNI_REQUEST', 'Cannot read the request: it is not in UTF-8', { cause });
  }
}

/** What is no request, and why. */
export function unreadable(why: string): NodeplaneError {
  return new NodeplaneError('ERR_CNI_REQUEST', `Cannot read the request: ${why}`);
}
