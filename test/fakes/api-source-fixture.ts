import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import type { Clock } from '../../src/core/index.ts';
import {
  type ApiClient,
  type ApiObservation,
  ApiSource,
  type ApiSourceOptions,
  createApiClient,
  type ObjectHandler,
} from '../../src/kube/index.ts';
import { proxyResources } from '../../src/proxy/index.ts';
import {
  apiNode,
  apiService,
  apiServiceCidr,
  apiSlice,
  FakeApiServer,
  ObjectRecorder,
  type Speaks,
} from './api-server/index.ts';

/** What a source tells after `applyWeb`. */
export const EVERYTHING = ['EndpointSlice demo/web-a', 'Node node-1', 'Service demo/web', 'ServiceCIDR kubernetes'];

/** Waits until `check` no longer throws. */
export function eventually(check: () => void): Promise<void> {
  return vi.waitFor(check, { timeout: 5_000, interval: 5 });
}

/** A source that reads what the proxy works from, from a server of its own. */
export class ApiSourceFixture {
  readonly #folder = mkdtempSync(join(tmpdir(), 'nodeplane-api-source-'));
  readonly server: FakeApiServer;
  readonly recorder = new ObjectRecorder();
  /** What source and client observed. */
  readonly observed: ApiObservation[] = [];
  #client: ApiClient | undefined;
  #source: ApiSource | undefined;

  get source(): ApiSource {
    if (!this.#source) throw new Error('The source was not started');
    return this.#source;
  }

  private constructor(speaks: Speaks) {
    this.server = new FakeApiServer({ speaks });
  }

  /** With a server at work, which has this node and the cluster's range of addresses. */
  static async create(speaks: Speaks = 'both'): Promise<ApiSourceFixture> {
    const fixture = new ApiSourceFixture(speaks);
    const { server } = fixture;
    await server.start();
    server.apply(apiNode('node-1'), apiServiceCidr('kubernetes', ['10.96.0.0/12']));
    server.writeKubeconfig(join(fixture.#folder, 'kubeconfig'));
    await fixture.connect();
    return fixture;
  }

  /** Makes the client of a source that is started from now on. */
  async connect(clock?: Clock): Promise<void> {
    this.#client?.close();
    const kubeconfig = join(this.#folder, 'kubeconfig');
    this.#client = await createApiClient({ kubeconfig, userAgent: 'test', ...(clock && { clock }) });
  }

  async start(options: Partial<ApiSourceOptions> = {}, handler: ObjectHandler = this.recorder): Promise<void> {
    this.#source = new ApiSource({
      client: this.#client!,
      resources: proxyResources('node-1', ''),
      random: () => 0,
      observe: (observation) => this.observed.push(observation),
      ...options,
    });
    await this.#source.start(handler);
  }

  async stop(): Promise<void> {
    await this.#source?.stop();
    this.#client?.close();
    await this.server.stop();
    rmSync(this.#folder, { recursive: true });
  }

  /** A Service with its slice. */
  applyWeb(): void {
    this.server.apply(apiService('demo/web'), apiSlice('demo/web', ['10.244.0.5']));
  }

  synced(): Promise<void> {
    return eventually(() => expect(this.recorder.isSynced).toBe(true));
  }

  /** Waits until these objects were told. */
  has(...keys: string[]): Promise<void> {
    return eventually(() => expect(this.recorder.keys()).toEqual(expect.arrayContaining(keys)));
  }

  /** The lists that were read. */
  lists(): readonly { readonly resource: string; readonly streamed: boolean }[] {
    return this.observed.flatMap((o) => (o.kind === 'listed' ? [{ resource: o.resource, streamed: o.streamed }] : []));
  }

  failures(): readonly Extract<ApiObservation, { readonly kind: 'failed' }>[] {
    return this.observed.filter((o) => o.kind === 'failed');
  }
}
