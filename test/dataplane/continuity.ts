import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Protocol, ServiceSpec } from '../../src/kube/index.ts';
import { makeService, makeSlice } from '../fakes/service-objects.ts';
import { type Agent, createLab, type Host, type LabNode, type Pod, removeAll, tally } from '../lab/lab.ts';
import { PATIENCE } from '../lab/patience.ts';
import { manifestOf, saveManifest } from '../samples/manifests.ts';
import { describeMode, type ModeName, testedProtocols } from './modes.ts';

// What time does to connections: syncs, restarts, endpoints that come and go, affinity that runs out.

const AFFINITY_SECONDS = 2 * PATIENCE;
const AFFINITY: Partial<ServiceSpec> = {
  sessionAffinity: 'ClientIP',
  sessionAffinityConfig: { clientIP: { timeoutSeconds: AFFINITY_SECONDS } },
};
const VIP = { plain: '10.96.1.1', sticky: '10.96.1.2', udp: '10.96.1.3', sctp: '10.96.1.4' };
const PROTOCOL = { plain: 'TCP', sticky: 'TCP', udp: 'UDP', sctp: 'SCTP' } as const satisfies Record<string, Protocol>;

/** What the tests have to know about a mode. */
interface Continuity {
  /** Flags that make it sync at once, and look at the kernel as often as it needs to. */
  readonly periods: readonly string[];
  /** A command that takes away what the mode has in the kernel. */
  readonly destroy: readonly [program: string, ...args: string[]];
}

/** Checks what time does to connections in one mode. */
export function testContinuity(mode: ModeName, { periods, destroy }: Continuity): void {
  describeMode(mode, (flags) => {
    const lab = createLab();
    const node: LabNode = lab.addNode({ name: 'node-1' });
    const manifests = join(lab.folder, 'manifests');
    const protocols = testedProtocols();
    // In the VM, which is slow, only what no other machine may be able to run.
    const describeHere = mode === 'ipvs' || process.env.NODEPLANE_VM === undefined ? describe : () => {};
    let web: Pod[];
    let client: Host;
    let agent: Agent;

    /** Writes one Service with the given endpoints. */
    function save(name: keyof typeof VIP, pods: readonly Pod[]): void {
      const protocol = PROTOCOL[name];
      const service = makeService(`default/${name}`, {
        clusterIP: VIP[name],
        ports: [{ port: 80, protocol }],
        ...(name === 'sticky' && AFFINITY),
      });
      const addresses = pods.map((pod) => pod.ip());
      const slice = makeSlice(`default/${name}`, addresses, { ports: [{ port: 8080, protocol }] });
      saveManifest(manifests, `${name}.yaml`, manifestOf(service, slice));
    }

    /** Saves, and waits until the agent says that it is in the kernel. */
    async function change(name: keyof typeof VIP, pods: readonly Pod[]): Promise<void> {
      const syncs = () => agent.logs().filter((line) => line.msg === 'Synced' && line.family === 'IPv4').length;
      const before = syncs();
      save(name, pods);
      await expect.poll(syncs, { interval: 5 }).toBeGreaterThan(before);
    }

    const who = async (ip: string) => {
      const outcome = await client.connect({ ip, port: 80 });
      return outcome.kind === 'answered' ? outcome.by : outcome.kind;
    };
    const start = () => node.startAgent({ manifests, flags: [...flags, ...periods] });

    beforeAll(async () => {
      web = ['web-1', 'web-2', 'web-3'].map((name) => node.addPod(name));
      client = node.addPod('client');
      for (const pod of web) for (const protocol of protocols) await pod.serve({ port: 8080, protocol });
      mkdirSync(manifests);
      save('plain', web);
      save('sticky', web);
      save('udp', [web[0]!]);
      save('sctp', [web[0]!]);
      agent = await start();
    });
    afterAll(async () => {
      await agent.stop();
      removeAll();
    });

    describeHere('connections that last', () => {
      it('go on through syncs that take their endpoint away, and through kill and restart of the agent', async () => {
        await change('plain', [web[0]!]);
        const held = await client.hold({ ip: VIP.plain, port: 80 });
        expect(held.outcome).toMatchObject({ kind: 'answered', by: 'web-1' });

        await change('plain', [web[1]!]);
        expect(await who(VIP.plain)).toBe('web-2');
        expect(await held.echo()).toMatchObject({ kind: 'answered', by: 'web-1' });

        await agent.kill();
        expect(await held.echo()).toMatchObject({ kind: 'answered', by: 'web-1' });
        expect(await who(VIP.plain)).toBe('web-2');
        agent = await start();
        expect(await held.echo()).toMatchObject({ kind: 'answered', by: 'web-1' });
        await held.close();
      });

      it('begin without a failure while endpoints come and go and the agent restarts', async () => {
        // An emulated processor is slower at everything, and must do more than answer this.
        const load = await client.startLoad({ ip: VIP.plain, port: 80 }, { perSecond: 200 / PATIENCE ** 2 });
        for (const pods of [[web[0]!], [web[1]!, web[2]!], web]) await change('plain', pods);
        await agent.kill();
        agent = await start();
        const { answered, failures } = await load.stop();
        expect(failures).toEqual([]);
        expect(answered).toBeGreaterThan(20);
      });
    });

    describeHere('a UDP client that goes on sending from one port', () => {
      const ask = async () => {
        const outcome = await client.connect(
          { ip: VIP.udp, port: 80, protocol: 'UDP' },
          { sourcePort: 5353, timeoutMs: 500 },
        );
        return outcome.kind === 'answered' ? outcome.by : outcome.kind;
      };

      it('moves to the new endpoint, hears that there is none, and finds the one that comes back', async () => {
        expect(await ask()).toBe('web-1');
        await change('udp', [web[1]!]);
        await expect.poll(ask).toBe('web-2');
        await change('udp', []);
        await expect.poll(ask).toBe('refused');
        await change('udp', [web[2]!]);
        await expect.poll(ask).toBe('web-3');
        // IPVS has a table of its own, in which such a flow ends by itself.
        if (mode === 'ipvs') return;
        expect(await agent.metrics()).toMatch(
          /kubeproxy_conntrack_reconciler_deleted_entries_total\{ip_family="IPv4"\} [1-9]/,
        );
      });
    });

    const describeSctp = protocols.includes('SCTP') ? describe : () => {};
    describeSctp('an SCTP association', () => {
      const target = { ip: VIP.sctp, port: 80, protocol: 'SCTP' } as const;
      /** The endpoints that conntrack leads such clients to. */
      const tracked = () =>
        web.filter((pod) => node.namespace.run('conntrack', '-L', '-p', 'sctp').includes(`src=${pod.ip()} `));

      it('is forgotten with its endpoint, IPVS lets it finish; new ones find the next endpoint', async () => {
        // What a pod sends to itself is masqueraded.
        const held = await Promise.all([client, web[0]!].map((host) => host.hold(target)));
        for (const { outcome } of held) expect(outcome).toMatchObject({ kind: 'answered', by: 'web-1' });
        expect(tracked()).toEqual([web[0]]);
        await change('sctp', [web[1]!]);
        expect(await client.connect(target)).toMatchObject({ kind: 'answered', by: 'web-2' });
        // Another sync begins when all that belongs to the one before is done.
        await change('sctp', [web[2]!]);
        if (mode !== 'ipvs') expect(tracked()).not.toContain(web[0]);
        const later = mode === 'ipvs' ? { kind: 'answered', by: 'web-1' } : { kind: 'timeout' };
        const outcomes = await Promise.all(held.map((connection) => connection.echo({ timeoutMs: 300 })));
        expect(outcomes).toEqual([expect.objectContaining(later), expect.objectContaining(later)]);
        for (const connection of held) await connection.close();
      });
    });

    describeHere('what somebody else destroys', () => {
      it('comes back, without anybody asking', async () => {
        node.namespace.run(...destroy);
        // Nobody can look before a dataplane that is told of it at once; its metric says that there was something to repair.
        await expect.poll(agent.metrics).toMatch(/nodeplane_drift_repaired_total\{ip_family="IPv4"\} [1-9]/);
        expect(await who(VIP.plain)).toMatch(/^web/);
      });
    });

    describeHere('session affinity', () => {
      it('is kept across a sync, is honoured only for endpoints that are there, and runs out', async () => {
        const first = await who(VIP.sticky);
        expect(first).toMatch(/^web-/);
        // Another endpoint goes: the client's own stays its own.
        const chosen = web.find((pod) => pod.name === first)!;
        const [other, third] = web.filter((pod) => pod !== chosen);
        await change('sticky', [chosen, third!]);
        const outcomes = await client.connectMany({ ip: VIP.sticky, port: 80 }, 20);
        expect(tally(outcomes).answers).toEqual({ [first]: 20 });

        await change('sticky', [other!, third!]);
        expect(await who(VIP.sticky)).not.toBe(first);

        // IPVS remembers a client as long as one of its connections, and ended ones for two minutes.
        if (mode === 'ipvs') return;
        await change('sticky', web);
        // Each connection renews it, so only a pause lets it run out: then all endpoints get their chance again.
        const seen = new Set<string>();
        for (let round = 0; round < 12 && seen.size < 2; round++) {
          seen.add(await who(VIP.sticky));
          await new Promise((resolve) => setTimeout(resolve, AFFINITY_SECONDS * 1000 + 200));
        }
        expect(seen.size).toBeGreaterThan(1);
      });
    });
  });
}
