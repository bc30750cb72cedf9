import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { explainHere } from '../../../src/agent/index.ts';
import { NODE_PATHS } from '../../../src/core/index.ts';
import type { Answer, WrittenQuestion } from '../../../src/explain/index.ts';
import type { EndpointSlice, KubeObject, Service, ServiceSpec, SliceEndpoint } from '../../../src/kube/index.ts';
import { enterNetns, openNetns } from '../../../src/sys/index.ts';
import { makeService, makeSlice } from '../../fakes/service-objects.ts';
import { manifestOf, nodeObject, saveManifest } from '../../samples/manifests.ts';
import { type Agent, createLab, type Host, type LabNode, type Pod } from '../lab.ts';
import { patient } from '../patience.ts';
import { builtProgram } from '../programs.ts';

/** What a command said. */
export interface Said {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number;
}

/** A question without flags, and what was answered. */
export interface LastAsked {
  readonly destination: string;
  readonly from: string;
  readonly answer: Answer;
}

/** What can be run where it is told. */
const COMMAND =
  /^(nodeplane|nsenter|ip|bridge|ss|sysctl|modprobe|conntrack|nft|ip6?tables-(legacy|nft)|kubectl|ipvsadm|tc) /;
/** What mends these may be no command: the agent's or the plugin's configuration, which is not in one place. */
const OF_CONFIGURATION: ReadonlySet<string | null> = new Set(['ingress-policy', 'way-back']);

/** The target port of all Services. */
export const TARGET = 8080;

/**
 * A cluster of two nodes, the first with an agent, to ask about and to break. What a test breaks it mends itself.
 */
export class ExplainWorld {
  readonly lab = createLab();
  readonly node: LabNode = this.lab.addNode({ name: 'node-1' });
  readonly other: LabNode = this.lab.addNode({ name: 'node-2' });
  readonly outside: Host = this.lab.addClient('outside');
  readonly client: Pod = this.node.addPod('client');
  readonly web: Pod = this.node.addPod('web');
  readonly web2: Pod = this.node.addPod('web2');
  readonly far: Pod = this.other.addPod('far');
  readonly manifests = join(this.lab.folder, 'manifests');
  agent: Agent | undefined;
  lastAsked: LastAsked | undefined;

  constructor() {
    mkdirSync(this.manifests);
  }

  /** In mode nftables, unless flags say otherwise. */
  async begin(objects: readonly KubeObject[], ...flags: string[]): Promise<void> {
    await this.prepare(objects);
    await this.startAgent(...flags);
  }

  /** All but the agent. */
  async prepare(objects: readonly KubeObject[]): Promise<void> {
    for (const pod of [this.web, this.web2, this.far]) {
      await pod.serve({ port: TARGET });
      await pod.serve({ port: TARGET, protocol: 'UDP' });
    }
    // Frames between pods of a bridge pass the rules, as Kubernetes demands.
    this.sysctl('net.bridge.bridge-nf-call-iptables=1', 'net.bridge.bridge-nf-call-ip6tables=1');
    saveManifest(this.manifests, 'all.yaml', manifestOf(nodeObject(this.node), nodeObject(this.other), ...objects));
  }

  async startAgent(...flags: string[]): Promise<void> {
    this.agent = await this.node.startAgent({
      manifests: this.manifests,
      flags: [
        ...(flags.includes('--proxy-mode') ? [] : ['--proxy-mode', 'nftables']),
        ...['--cluster-cidr', '10.244.0.0/16,fd00:10:244::/48', ...flags],
      ],
    });
  }

  async end(): Promise<void> {
    await this.agent?.stop();
    this.agent = undefined;
  }

  /** Some settings are not there on every kernel. */
  sysctl(...settings: string[]): void {
    for (const setting of settings) {
      try {
        this.node.namespace.run('sysctl', '-qw', setting);
      } catch {
        // Without the module there is nothing to set.
      }
    }
  }

  run(program: string, ...args: string[]): string {
    return this.node.namespace.run(program, ...args);
  }

  command(...args: string[]): Promise<Said> {
    return runIn(this.node, ...args);
  }

  /**
   * Asks, and holds the exit status to the verdict; with flags by the program, which takes a fifth of a second of a
   * processor to start.
   */
  async ask(destination: string, from: string, ...flags: string[]): Promise<Answer> {
    if (flags.length === 0) {
      const [answer] = await this.askHere([{ destination, source: from }]);
      this.lastAsked = { destination, from, answer: answer! };
      return answer!;
    }
    const { stdout, stderr, exitCode } = await this.command(
      'explain',
      destination,
      '--from',
      from,
      '-o',
      'json',
      ...flags,
    );
    return answerIn({ stdout, stderr, exitCode });
  }

  /** Asks within this process, which starts no program for each question: for many of them. */
  async askHere(questions: readonly WrittenQuestion[]): Promise<readonly Answer[]> {
    const own = openNetns('/proc/thread-self/ns/net');
    const answers: Answer[] = [];
    try {
      enterNetns(this.node.namespace.path);
      for (const question of questions) {
        const options = { question, json: true, verbose: false, unicode: false, directory: NODE_PATHS.runDir };
        answers.push(answerIn(await explainHere(options)));
      }
    } finally {
      enterNetns(`/proc/self/fd/${own.fd}`);
      own.close();
    }
    return answers;
  }

  /**
   * Waits until the agent has mended all that an earlier test broke: it has tracked flows forgotten for each sync, a
   * second after it too.
   */
  async atRest(): Promise<void> {
    const syncs = () => this.agent!.logs().filter(({ msg }) => msg === 'Synced').length;
    let before = -1;
    const isSame = () => {
      const now = syncs();
      const same = now === before;
      before = now;
      return same;
    };
    await expect.poll(isSame, { interval: patient(2000), timeout: patient(60_000) }).toBe(true);
  }

  /** Waits until the agent has written what is new. */
  async settle(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, patient(1500)));
  }
}

function answerIn({ stdout, stderr, exitCode }: Said): Answer {
  expect(stderr).toBe('');
  const answer = JSON.parse(stdout) as Answer;
  expect(exitCode).toBe({ works: 0, fails: 1, partly: 1, unknown: 2 }[answer.verdict]);
  const [remedy] = answer.remedy;
  if (remedy !== undefined && !OF_CONFIGURATION.has(answer.code)) expect(remedy).toMatch(COMMAND);
  return answer;
}

export function runIn(node: LabNode, ...args: string[]): Promise<Said> {
  return new Promise((resolve, reject) => {
    const child = spawn('ip', ['netns', 'exec', node.namespace.name, builtProgram('nodeplane'), ...args], {
      env: { ...process.env, LC_ALL: 'C.UTF-8' },
    });
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk;
    });
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk;
    });
    child.on('error', reject);
    child.on('close', (code) => resolve({ stdout, stderr, exitCode: code ?? -1 }));
  });
}

/** A Service of one port, 80 to TARGET, and its slice. */
export function served(
  name: string,
  clusterIP: string,
  endpoints: readonly (string | SliceEndpoint)[],
  spec: Partial<ServiceSpec> = {},
  port: number = TARGET,
): (Service | EndpointSlice)[] {
  const [{ protocol } = { protocol: undefined }] = spec.ports ?? [];
  const family = clusterIP.includes(':') ? 'IPv6' : 'IPv4';
  const slice = makeSlice(name, endpoints, {
    addressType: family,
    ports: [{ port, ...(protocol && { protocol }) }],
  });
  return [makeService(name, { clusterIP, ipFamilies: [family], ...spec }), slice];
}

/** An endpoint on a node. */
export function on(node: LabNode, pod: string, more: Partial<SliceEndpoint> = {}): SliceEndpoint {
  return { addresses: [pod], nodeName: node.name, ...more };
}
