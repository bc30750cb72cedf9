import { NodeplaneError, plainText } from '../../../core/index.ts';
import { affinityOf } from './affinity/affinity.ts';
import { askStatus } from './ask-status.ts';
import { connectionsOf } from './connections.ts';
import { servicesText, serviceText } from './services-text.ts';
import { statusText } from './status-text.ts';

export interface ShowStatusOptions {
  /** The metrics port of this machine's agent, `127.0.0.1:10249`. */
  readonly address: string;
  readonly json: boolean;
}

export interface ShowServicesOptions extends ShowStatusOptions {
  /** `namespace/name` for one Service; a part of names, an address or a port for several; empty for all. */
  readonly name: string;
  /** From 1. */
  readonly page: number;
}

export interface ShownStatus {
  readonly stdout: string;
  /** 0: nothing is wrong; 2: something is. */
  readonly exitCode: 0 | 2;
}

/**
 * `nodeplane status`: how this node stands, by its agent.
 *
 * @throws ERR_STATUS_AGENT when no agent answers
 */
export async function showStatus({ address, json }: ShowStatusOptions): Promise<ShownStatus> {
  const status = await askStatus(address, { query: '', page: 1 });
  const stdout = json ? jsonText(status) : statusText(status);
  return { stdout, exitCode: status.problemsTotal > 0 ? 2 : 0 };
}

/**
 * `nodeplane services`: what of Services is served here. The agent is asked for plan and reasons, the kernel for the connections
 * of the one Service that is asked for, and for the clients it remembers.
 *
 * @throws ERR_STATUS_AGENT when no agent answers, ERR_CONFIG when no Service fits the name
 */
export async function showServices({ address, json, name, page }: ShowServicesOptions): Promise<ShownStatus> {
  const status = await askStatus(address, { query: name, page });
  const { services, node, takenAt, schema, mode } = status;
  const [first, ...others] = services.services;
  if (name !== '' && !first) {
    const message = `Nothing is served here of a Service "${plainText(name)}": none of ${services.total} fits. Headless and ExternalName Services are nobody's to serve; "nodeplane services" lists the others`;
    throw new NodeplaneError('ERR_CONFIG', message, { facts: { name } });
  }
  const one = name !== '' && others.length === 0 ? first : undefined;
  const connections = one && connectionsOf(one.ports);
  const affinity = one && affinityOf(mode, one.name, one.ports);
  const wrong = services.services.some(
    ({ problems, ports }) => problems.length > 0 || ports.some(({ leftOut }) => leftOut),
  );
  const exitCode = wrong ? 2 : 0;
  if (json) {
    const shown = { schema, node, takenAt, services, connections: connections ?? null, affinity: affinity ?? null };
    return { stdout: jsonText(shown), exitCode };
  }
  if (one && connections) return { stdout: serviceText(one, takenAt, connections, affinity), exitCode };
  return { stdout: servicesText(status), exitCode };
}

function jsonText(value: object): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
