import { jsonText, NodeplaneError, nearestWord, plainText } from '../../../core/index.ts';
import { servicesCommand } from '../own-commands.ts';
import type { Status } from '../status.ts';
import { affinityOf } from './affinity/affinity.ts';
import { askStatus } from './ask-status.ts';
import { connectionsOf } from './connections.ts';
import { servicesText, serviceText } from './services-text.ts';
import { statusText } from './status-text.ts';
import { type Destination, type NamedDestination, readTableUse, serviceAt, topText } from './top.ts';

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
  // As `nodeplane explain` and kubectl write a Service.
  const query = name.replace(/^(?:svc|service)\/(?=[^/]+\/[^/]+$)/, '');
  const status = await askStatus(address, { query, page });
  const { services, node, takenAt, schema, mode } = status;
  const [first, ...others] = services.services;
  if (name !== '' && !first) {
    const meant = await nearestService(address, query);
    const hint = meant === undefined ? '.' : `; did you mean ${plainText(meant)}?`;
    const message = `Nothing is served here of a Service "${plainText(name)}": none of ${services.total} fits${hint} Headless and ExternalName Services are nobody's to serve; "${servicesCommand(address)}" lists the others`;
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

/**
 * `nodeplane services --top`: which Services the tracked connections of this node were made to. The kernel is asked for the
 * connections, the agent for the names of those with the most.
 *
 * @throws ERR_STATUS_AGENT when no agent answers, ERR_CONFIG when the connections cannot be read
 */
export async function showTopServices({ address, json }: ShowStatusOptions): Promise<ShownStatus> {
  const use = readTableUse();
  if (typeof use === 'string') {
    throw new NodeplaneError('ERR_CONFIG', `Cannot read the tracked connections: ${use}. This needs root on the node`);
  }
  const destinations: NamedDestination[] = [];
  // All at once: for each question the agent looks through all Services.
  const ips = [...new Set(use.destinations.map(({ ip }) => ip))];
  const known = ips.length === 0 ? undefined : await servicesAt(address, ips.join());
  for (const destination of use.destinations) {
    let service = serviceAt(destination, known?.services ?? []);
    if (known && known.pages > 1) {
      service ??= serviceAt(destination, (await servicesAt(address, destination.ip)).services);
    }
    destinations.push({ ...destination, service: service ?? (await serviceOfNodePort(address, destination)) });
  }
  const stdout = json ? jsonText({ ...use, destinations }) : topText(use, destinations);
  return { stdout, exitCode: 0 };
}

/** The name that a wrong one probably stands for, among the first page of those in its namespace. */
async function nearestService(address: string, wrong: string): Promise<string | undefined> {
  const [namespace] = /^[^/]+\//.exec(wrong) ?? [''];
  const names = (await servicesAt(address, namespace)).services.map(({ name }) => name);
  const compared = new Map(names.map((name) => [namespace === '' ? name.replace(/^.*\//, '') : name, name]));
  return compared.get(nearestWord(wrong, compared.keys()) ?? '');
}

async function servicesAt(address: string, query: string): Promise<Status['services']> {
  return (await askStatus(address, { query, page: 1 })).services;
}

async function serviceOfNodePort(address: string, destination: Destination): Promise<string | null> {
  const { services } = await servicesAt(address, String(destination.port));
  const open = services.filter(({ ports }) => ports.some(({ nodePort }) => nodePort === destination.port));
  return serviceAt(destination, open);
}
