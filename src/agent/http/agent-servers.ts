import type { Registry } from 'prom-client';
import {
  addressFromHere,
  type BindAddress,
  isEnabled,
  type KubeProxyConfig,
  type Program,
  writeConfigz,
} from '../../config/index.ts';
import { type Clock, sleep } from '../../core/index.ts';
import type { ProxyHealth } from '../../proxy/index.ts';
import type { Logger } from '../logger.ts';
import type { Build } from '../metrics/component-metrics.ts';
import { registerConnectionMetrics } from './http-connections.ts';
import { httpConnections } from './http-listener.ts';
import { HttpServer, type Pages } from './http-server.ts';
import { type HealthPagesOptions, healthPages, metricsPages } from './pages.ts';
import { Profiler } from './profiler.ts';

export interface AgentServersOptions {
  /** The name of the component in pages that tools read. */
  readonly component: string;
  readonly program: Program;
  readonly config: KubeProxyConfig;
  /** Every flag with its value as text, for /flagz. */
  readonly flags: Readonly<Record<string, string>>;
  readonly build: Build;
  readonly clock: Clock;
  readonly logger: Logger;
  /** What /metrics shows; the figures of the connections are added to it. */
  readonly registry: Registry;
  readonly health: ProxyHealth;
  /** Called after each answer of a health page. */
  readonly countAnswer: HealthPagesOptions['countAnswer'];
  /** How the agent's parts stand. */
  readonly readiness: HealthPagesOptions['readiness'];
  /** Further pages of the metrics port. */
  readonly pages: Pages;
  /** Those of --status-bind-address. */
  readonly statusPages: Pages;
}

/** Where processes of this machine reach the ports, as `address:port`; empty: there is none. */
export function portsFromHere({ healthzBindAddress, metricsBindAddress }: KubeProxyConfig) {
  return {
    health: healthzBindAddress ? addressFromHere(healthzBindAddress) : '',
    metrics: addressFromHere(metricsBindAddress),
  };
}

/** How long the ports of an agent that has ended are waited for, and how often they are looked at. */
const HANDOVER_MS = 2000;
const HANDOVER_POLL_MS = 10;

/** A server, and the reason kube-proxy gives in its Event when it cannot listen and that is fatal. */
interface NamedServer {
  readonly server: HttpServer;
  readonly failure: string;
}

/** The agent's HTTP ports: health and status (if they have an address) and metrics, the last with the profiler if that is asked for. */
export class AgentServers {
  readonly #servers: readonly NamedServer[];
  readonly #profiler: Profiler | undefined;
  readonly #clock: Clock;

  constructor(options: AgentServersOptions) {
    const { config, clock, logger, registry, health, countAnswer, readiness } = options;
    this.#clock = clock;
    registerConnectionMetrics(registry, httpConnections);
    this.#profiler = config.profiling ? new Profiler(clock) : undefined;
    const server = (name: string, address: BindAddress, pages: Pages) =>
      new HttpServer({ name, address, pages, hardFail: config.bindAddressHardFail, clock, logger });
    const { healthzBindAddress, metricsBindAddress } = config;
    const servers: NamedServer[] = [];
    if (healthzBindAddress) {
      const pages = healthPages({ health, countAnswer, readiness });
      const failure = 'FailedToStartProxierHealthcheck';
      servers.push({ server: server('health server', healthzBindAddress, pages), failure });
    }
    const pages = pagesOfMetrics(options, this.#profiler);
    servers.push({ server: server('metrics server', metricsBindAddress, pages), failure: 'FailedToStartMetricServer' });
    const { statusBindAddress } = config;
    if (statusBindAddress) {
      const status = server('status server', statusBindAddress, options.statusPages);
      servers.push({ server: status, failure: 'FailedToStartStatusServer' });
    }
    this.#servers = servers;
  }

  /**
   * Listens on all ports.
   *
   * @param failed awaited before the error of a port that cannot be listened on is thrown, with the reason for an Event
   * @throws ERR_CONFIG or the system's error, when not being able to listen is fatal (--bind-address-hard-fail)
   */
  async start(failed: (reason: string, error: unknown) => Promise<void>): Promise<void> {
    await this.#profiler?.start();
    for (const { server, failure } of this.#servers) {
      try {
        await server.start();
      } catch (error) {
        await failed(failure, error);
        throw error;
      }
    }
  }

  /** Listens on what is free. Of what is not, nothing is said: who holds the node holds it. */
  async listenIfFree(): Promise<void> {
    await Promise.all(this.#servers.map(({ server }) => server.listenIfFree()));
  }

  /**
   * Listens on all ports once another process, which has just ended, has given them back: the kernel takes its time to close
   * all that a killed process had open. As `start` from there on.
   */
  async takeOver(failed: (reason: string, error: unknown) => Promise<void>): Promise<void> {
    const clock = this.#clock;
    const deadline = clock.now() + HANDOVER_MS;
    const isHeld = async () =>
      !(await Promise.all(this.#servers.map(({ server }) => server.listenIfFree()))).every(Boolean);
    while ((await isHeld()) && clock.now() < deadline) {
      await sleep(clock, HANDOVER_POLL_MS);
    }
    await this.start(failed);
  }

  async stop(): Promise<void> {
    for (const { server } of this.#servers) await server.stop();
    this.#profiler?.stop();
  }
}

function pagesOfMetrics(options: AgentServersOptions, profiler: Profiler | undefined): Pages {
  const { config, flags, program, build, clock, registry, component, pages } = options;
  const startedAt = clock.wallTime();
  const began = clock.now();
  const statusz = () => ({
    startedAt,
    upMs: clock.now() - began,
    version: build.version,
    nodeVersion: process.version,
  });
  return metricsPages({
    mode: config.mode,
    registry,
    component,
    configz: () => writeConfigz(config.effective, program),
    ...(isEnabled(config.featureGates, 'ComponentFlagz') && { flagz: () => flags }),
    ...(isEnabled(config.featureGates, 'ComponentStatusz') && { statusz }),
    more: { ...pages, ...profiler?.pages },
  });
}
