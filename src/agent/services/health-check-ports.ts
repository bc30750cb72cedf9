import { readFileSync } from 'node:fs';
import { formatIp, formatIpPort, type IpAddress, type IpFamily, NodeplaneError, parseIp } from '../../core/index.ts';
import type { ServiceHealthCheck } from '../../proxy/index.ts';
import { type HttpAnswer, type HttpListener, listenHttp } from '../http/http-listener.ts';

export interface HealthCheckPortsOptions {
  readonly family: IpFamily;
  /** Whether the proxy keeps up (`ProxyHealth.isHealthy`); asked for each answer. */
  readonly isHealthy: () => boolean;
  /** A port could not be opened: ERR_HEALTH_CHECK_PORT. Told once until the reason changes or it was open in between. */
  readonly failed: (check: ServiceHealthCheck, error: NodeplaneError) => void;
  /** How many sockets to open at most. @default this family's share of the process's descriptors */
  readonly mostPorts?: number;
}

/** Descriptors that are left to everything else: connections to our ports, rules, watches, pods. */
const OTHER_DESCRIPTORS = 512;

/** Half of the descriptors that may be used (`Max open files` in proc(5)), for there are two families. */
function shareOfDescriptors(): number {
  const soft = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
  return soft === undefined
    ? Number.POSITIVE_INFINITY
    : Math.max(16, Math.floor((Number(soft) - OTHER_DESCRIPTORS) / 2));
}

/** Which health checks to answer, and where. */
export interface WantedHealthChecks {
  readonly checks: Iterable<ServiceHealthCheck>;
  /** Addresses to listen on; `all`: every address of the family. Those of the other family are passed over. */
  readonly addresses: 'all' | readonly IpAddress[];
}

/** One socket that should be open. */
interface WantedListener {
  readonly check: ServiceHealthCheck;
  readonly ip: IpAddress;
  readonly key: string;
}

const EVERYWHERE: Readonly<Record<IpFamily, IpAddress>> = { IPv4: parseIp('0.0.0.0'), IPv6: parseIp('::') };

/**
 * Answers the health checks of cloud load balancers (`spec.healthCheckNodePort`) in one family.
 *
 * Each Service has a server of its own, on its own port; every path and method gets the same answer. Numbers are taken
 * over at once by `reconcile`; sockets are opened and closed one reconcile after the other, all closing first, so that
 * Services may swap their ports.
 */
export class HealthCheckPorts {
  readonly #options: HealthCheckPortsOptions;
  readonly #listeners = new Map<string, HttpListener>();
  readonly #failures = new Map<string, string>();
  #checks: ReadonlyMap<string, ServiceHealthCheck> = new Map();
  #wanted: ReadonlyMap<string, WantedListener> = new Map();
  #work: Promise<void> = Promise.resolve();
  readonly #mostPorts: number;

  constructor(options: HealthCheckPortsOptions) {
    this.#options = options;
    this.#mostPorts = options.mostPorts ?? shareOfDescriptors();
  }

  /** Makes the open ports those wanted; resolves when that is done. What cannot be opened is tried again next time. */
  reconcile({ checks, addresses }: WantedHealthChecks): Promise<void> {
    const all = [...checks];
    this.#checks = new Map(all.map((check) => [check.serviceName, check]));
    this.#wanted = new Map(
      all.flatMap((check) => this.#listenersFor(check, addresses)).map((listener) => [listener.key, listener]),
    );
    const settle = () => this.#settle();
    this.#work = this.#work.then(settle, settle);
    return this.#work;
  }

  /** Closes all ports. */
  close(): Promise<void> {
    return this.reconcile({ checks: [], addresses: 'all' });
  }

  #listenersFor(check: ServiceHealthCheck, addresses: WantedHealthChecks['addresses']): WantedListener[] {
    const { family } = this.#options;
    const ips = addresses === 'all' ? [EVERYWHERE[family]] : addresses.filter((ip) => ip.family === family);
    return ips.map((ip) => ({ check, ip, key: `${check.serviceName} ${formatIpPort(ip, check.port)}` }));
  }

  /** Looks at what is wanted now, which may be newer than what this run was begun for. */
  async #settle(): Promise<void> {
    const wanted = this.#wanted;
    const superfluous = [...this.#listeners].filter(([key]) => !wanted.has(key));
    for (const [key] of superfluous) this.#listeners.delete(key);
    await Promise.all(superfluous.map(([, listener]) => listener.close()));
    for (const key of this.#failures.keys()) if (!wanted.has(key)) this.#failures.delete(key);
    const missing = [...wanted.values()].filter(({ key }) => !this.#listeners.has(key));
    const room = Math.max(0, this.#mostPorts - this.#listeners.size);
    for (const listener of missing.slice(room)) {
      const reason = `${this.#mostPorts} are open, more would leave no descriptors for the rules`;
      this.#tellOnce(listener, reason, 'raise the limit of open files', undefined);
    }
    await Promise.all(missing.slice(0, room).map((listener) => this.#open(listener)));
  }

  #tell({ check, ip }: WantedListener, reason: string, remedy: string, cause: unknown): void {
    const { serviceName, port } = check;
    const message = `Listen for health checks of Service "${serviceName}" on ${formatIpPort(ip, port)}: ${reason}; ${remedy}`;
    const facts = { service: serviceName, address: formatIp(ip), port };
    this.#options.failed(check, new NodeplaneError('ERR_HEALTH_CHECK_PORT', message, { facts, cause }));
  }

  #tellOnce(wanted: WantedListener, reason: string, remedy: string, cause: unknown): void {
    if (this.#failures.get(wanted.key) === reason) return;
    this.#failures.set(wanted.key, reason);
    this.#tell(wanted, reason, remedy, cause);
  }

  async #open(wanted: WantedListener): Promise<void> {
    const { check, ip, key } = wanted;
    const host = formatIp(ip);
    const { serviceName, port } = check;
    try {
      const listener = await listenHttp({
        host,
        port,
        ipv6Only: true,
        answer: () => this.#answer(serviceName),
        failed: (error) =>
          this.#tell(
            wanted,
            error.code ?? String(error),
            'nobody is accepted, which is tried again every second',
            error,
          ),
      });
      this.#listeners.set(key, listener);
      this.#failures.delete(key);
    } catch (error) {
      const reason = (error as NodeJS.ErrnoException).code ?? String(error);
      this.#tellOnce(wanted, reason, 'free the port or address, the next sync tries again', error);
    }
  }

  #answer(serviceName: string): HttpAnswer {
    // A Service that went while the request was under way has no endpoints.
    const localEndpoints = this.#checks.get(serviceName)?.localEndpoints ?? 0;
    const serviceProxyHealthy = this.#options.isHealthy();
    const [namespace, name] = serviceName.split('/');
    return {
      status: localEndpoints > 0 && serviceProxyHealthy ? 200 : 503,
      headers: {
        'Content-Type': 'application/json',
        'X-Content-Type-Options': 'nosniff',
        'X-Load-Balancing-Endpoint-Weight': String(localEndpoints),
      },
      // The order of the fields and the tabs are part of the interface.
      body: JSON.stringify({ service: { namespace, name }, localEndpoints, serviceProxyHealthy }, undefined, '\t'),
    };
  }
}
