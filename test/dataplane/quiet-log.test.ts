import { appendFileSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { enterNetns } from '../../src/sys/index.ts';
import { type ApiObject, apiNode, apiService, apiSlice, FakeApiServer } from '../fakes/api-server/index.ts';
import { callPlugin } from '../lab/cni/plugin.ts';
import { installedConfig } from '../lab/cni/served-node.ts';
import { type Agent, createLab, type LabNode, removeAll } from '../lab/lab.ts';
import { createNamespace, type TestNamespace } from '../lab/namespace.ts';
import { prepareNode } from '../lab/node-state.ts';
import { builtProgram } from '../lab/programs.ts';
import { refusedChanges, type WatchedPrograms, watchPrograms } from '../lab/refusals.ts';
import { describeMode } from './modes.ts';

/*
 * What an operator reads of an agent's life in which nothing goes wrong: its first start on a fresh node, pods, a stop,
 * another start, an upgrade. Nothing of it is for them to act upon, so no line is above `info`. And what it asks of the kernel then
 * is granted: a refusal that belongs to the normal way costs time, and hides those that do not.
 */

const OWN_NETNS = `/proc/${process.ppid}/ns/net`;
const SERVICE = { spec: { clusterIP: '10.96.0.10', clusterIPs: ['10.96.0.10'] } };

/** A node as a kubelet and a container runtime leave it, on which /run and /var/lib are as empty as after its installation. */
class FreshNode {
  readonly node: LabNode;
  readonly manifests: string;
  readonly #folder: string;
  #version = builtProgram('nodeplane');
  #watched: WatchedPrograms | undefined;

  constructor() {
    const lab = createLab();
    this.node = lab.addNode({ name: 'node-1' });
    this.#folder = lab.folder;
    this.manifests = this.#at('manifests');
    for (const name of ['manifests', 'run', 'var-lib']) mkdirSync(this.#at(name));
    prepareNode(this.node.namespace, 'kubelet-nft');
  }

  /** Starts the agent in its own view of the files, waits until pods can be made. */
  async start(flags: readonly string[], manifests?: string): Promise<Agent> {
    // A mount namespace of its own comes with `ip netns exec`.
    const binds = [`mount --bind ${this.#at('run')} /run`, `mount --bind ${this.#at('var-lib')} /var/lib`];
    const watch = this.#watched ? [`export NODEPLANE_NETLINK_DEBUG=1 PATH=${this.#watched.directory}:$PATH`] : [];
    const script = [...binds, ...watch, 'shift', `exec ${this.#version} "$@"`].join(' && ');
    const agent = await this.node.startAgent({
      enter: ['ip', 'netns', 'exec', this.node.namespace.name, 'sh', '-c', script, 'sh'],
      flags: ['--cni', '--cni-bin-dir', this.#at('bin'), '--cni-conf-dir', this.#at('net.d'), ...flags],
      ...(manifests !== undefined && { manifests }),
    });
    await expect.poll(() => existsSync(this.#conflist)).toBe(true);
    return agent;
  }

  /** From now on it is seen what is refused: netlink is printed to the log, and programs that fail are noted. */
  watchRefusals(): void {
    this.#watched = watchPrograms(this.#folder);
  }

  /** What was refused since, of the agent and of the programs that it runs. */
  refusals({ logFile }: Agent): unknown[] {
    return [...refusedChanges(readFileSync(logFile, 'utf8')), ...this.#watched!.failed()];
  }

  /** From now on another version is started, which brings another plugin for the host. */
  upgrade(): void {
    const next = this.#at('next-version');
    cpSync(dirname(this.#version), next, { recursive: true });
    appendFileSync(join(next, 'nodeplane-cni-shim'), '\0');
    this.#version = join(next, 'nodeplane');
  }

  /** Whether the plugin of the version that runs is the one on the host. */
  get pluginIsCurrent(): boolean {
    const brought = readFileSync(join(dirname(this.#version), 'nodeplane-cni-shim'));
    return readFileSync(join(this.#at('bin'), 'nodeplane-cni')).equals(brought);
  }

  /** A call of the runtime, which succeeds. */
  async call(command: string, pod: TestNamespace): Promise<void> {
    const outcome = await callPlugin(this.node.namespace, {
      command,
      netns: pod,
      containerId: pod.name,
      config: installedConfig(this.#conflist),
      program: join(this.#at('bin'), 'nodeplane-cni'),
      env: {
        NODEPLANE_CNI_SOCKET: this.#at('run/nodeplane/cni.sock'),
        NODEPLANE_CNI_SPOOL: this.#at('var-lib/nodeplane/cni/spool'),
      },
    });
    expect(outcome).toMatchObject({ status: 0, stderr: '' });
  }

  get #conflist(): string {
    return join(this.#at('net.d'), '10-nodeplane.conflist');
  }

  #at(name: string): string {
    return join(this.#folder, name);
  }
}

function objects({ podCidrs, ip }: LabNode): ApiObject[] {
  return [
    { ...apiNode('node-1', ip()), spec: { podCIDR: podCidrs[0], podCIDRs: podCidrs } },
    apiService('demo/web', SERVICE),
    apiSlice('demo/web', ['10.244.1.77']),
  ];
}

function writeObjects({ node, manifests }: FreshNode): void {
  const text = objects(node).map((object) => JSON.stringify(object));
  writeFileSync(join(manifests, 'all.yaml'), text.join('\n---\n'));
}

/** Lines that somebody would have to look at; those without a level are not the logger's. */
const notable = (agent: Agent) =>
  agent.logs().filter(({ level, msg }) => level !== 'info' && !OF_THE_LAB.test(String(msg)));

/** Only the first network namespace may write it, which a lab node is not; kernels differ in whether they show it to others. */
const OF_THE_LAB = /nf_conntrack_max=\d+": permission denied/;

afterEach(removeAll);

/** In the VM, which is slow, only what no other machine may be able to run. */
const MODES = (['iptables, nft variant', 'iptables, legacy variant', 'nftables', 'ipvs'] as const).filter(
  (mode) => mode === 'ipvs' || process.env.NODEPLANE_VM === undefined,
);

for (const mode of MODES) {
  describeMode(mode, (flags) => {
    it('says nothing above info from the first start to an upgrade, with manifests', async () => {
      const fresh = new FreshNode();
      writeObjects(fresh);
      const [early, late] = [createNamespace('early'), createNamespace('late')];

      let agent = await fresh.start(flags, fresh.manifests);
      await fresh.call('ADD', early);
      expect(await agent.stop()).toBe(0);
      expect(notable(agent)).toEqual([]);

      agent = await fresh.start(flags, fresh.manifests);
      await fresh.call('ADD', late);
      await fresh.call('DEL', early);
      expect(await agent.stop()).toBe(0);
      expect(notable(agent)).toEqual([]);

      fresh.upgrade();
      agent = await fresh.start(flags, fresh.manifests);
      expect(fresh.pluginIsCurrent).toBe(true);
      await fresh.call('ADD', early);
      for (const pod of [early, late]) await fresh.call('DEL', pod);
      expect(await agent.stop()).toBe(0);
      expect(notable(agent)).toEqual([]);
    });

    it('asks for nothing that is refused, from the first start to a restart', async () => {
      const fresh = new FreshNode();
      writeObjects(fresh);
      fresh.watchRefusals();
      const pod = createNamespace('pod');
      let agent = await fresh.start(flags, fresh.manifests);
      await fresh.call('ADD', pod);
      await agent.stop();
      agent = await fresh.start(flags, fresh.manifests);
      await fresh.call('DEL', pod);
      await agent.stop();
      expect(readFileSync(agent.logFile, 'utf8')).toContain('netlink < NLMSG_ERROR');
      expect(fresh.refusals(agent)).toEqual([]);
    });

    it('says nothing above info at a first start with an API server', async () => {
      const fresh = new FreshNode();
      const api = new FakeApiServer();
      enterNetns(fresh.node.namespace.path);
      try {
        await api.start();
      } finally {
        enterNetns(OWN_NETNS);
      }
      try {
        const kubeconfig = join(fresh.manifests, 'kubeconfig');
        api.writeKubeconfig(kubeconfig);
        api.apply(...objects(fresh.node));
        const agent = await fresh.start([...flags, '--kubeconfig', kubeconfig]);
        const pod = createNamespace('pod');
        await fresh.call('ADD', pod);
        await fresh.call('DEL', pod);
        expect(await agent.stop()).toBe(0);
        expect(notable(agent)).toEqual([]);
      } finally {
        await api.stop();
      }
    });
  });
}
