import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { dirname } from 'node:path';
import { afterEach, expect } from 'vitest';
import type { Answer, CauseCode } from '../../../src/explain/index.ts';
import type { Host, LabNode, Pod, Target } from '../lab.ts';
import { builtProgram } from '../programs.ts';
import type { ExplainWorld } from './explain-world.ts';

/**
 * Remedies that mend by themselves; others show what is to be mended. A larger table of tracked connections is not among them: the one of
 * a namespace holds no more than the machine's own.
 */
const MENDING =
  /^(nsenter --net=\S+ )?(ip link set|ip neigh del|ip -6 address add|bridge (fdb replace|link set)|sysctl -w(?! net.netfilter.nf_conntrack_max)|modprobe|conntrack -D|nft delete table|nodeplane (cleanup|diff --repair)) /;

/** Breaks things in a world, and mends all of it after each test: first as it was told, if that was, to see what it was told for gone. */
export class Faults {
  readonly #world: ExplainWorld;
  readonly #mend: (() => void)[] = [];

  constructor(world: ExplainWorld) {
    this.#world = world;
    afterEach(async () => {
      try {
        await this.#takeAdvice();
      } finally {
        this.mend();
      }
    });
  }

  async #takeAdvice(): Promise<void> {
    const asked = this.#world.lastAsked;
    this.#world.lastAsked = undefined;
    if (!MENDING.test(asked?.answer.remedy[0] ?? '')) return;
    const { destination, from } = asked!;
    // The test may have mended it.
    const { remedy } = await this.#world.ask(destination, from);
    const [line] = remedy;
    if (line === undefined || !MENDING.test(line)) return;
    for (const back of this.#waysBack(line)) this.undo(() => void paste(this.#world.node, back));
    paste(this.#world.node, line);
    const { remedy: then, cause } = await this.#world.ask(destination, from);
    expect(then[0], cause).not.toBe(line);
    // What it has mended cannot be mended again.
    for (const undo of this.#mend.splice(0).reverse()) {
      try {
        undo();
      } catch {}
    }
  }

  /** Runs when the test is over. */
  undo(by: () => void): void {
    this.#mend.push(by);
  }

  /** What undoes the effects of a remedy that none of the test's own undoes. */
  #waysBack(line: string): readonly string[] {
    const [, set, settings] = /^(.*\bsysctl -w) (.*)$/.exec(line) ?? [];
    if (set && settings) {
      const names = settings.split(' ').map((one) => one.replace(/=.*/, ''));
      const before = paste(this.#world.node, `${set.replace('-w', '-n')} ${names.join(' ')}`)
        .trim()
        .split('\n');
      return names.map((name, index) => `${set} ${name}='${before[index]}'`);
    }
    const back = line.replace(/(fdb|address) (replace|add)/, '$1 del');
    return back === line ? [] : [back];
  }

  mend(): void {
    for (const undo of this.#mend.splice(0).reverse()) undo();
  }

  /** Rules of somebody else; on one line nft wants a line's end in front of each closing brace. */
  nft(text: string, table: string, on: Host = this.#world.node): void {
    on.namespace.run('nft', text.replaceAll(' }', '\n}'));
    this.undo(() => on.namespace.run('nft', `delete table ${table}`));
  }

  sysctl(name: string, value: string, on: Host = this.#world.node): void {
    const before = on.namespace.run('sysctl', '-n', name).trim();
    on.namespace.run('sysctl', '-qw', `${name}=${value}`);
    this.undo(() => void on.namespace.run('sysctl', '-qw', `${name}=${before}`));
  }

  /** Two command lines of `program`, by words. */
  run(program: string, doing: string, undoing: string, on: Host = this.#world.node): void {
    on.namespace.run(program, ...doing.split(' '));
    this.undo(() => void on.namespace.run(program, ...undoing.split(' ')));
  }

  ip(doing: string, undoing: string, on: Host = this.#world.node): void {
    this.run('ip', doing, undoing, on);
  }

  /**
   * An unanswered flow to port 80 of a Service as one is left that began before there were rules. The agent ends such flows when it
   * writes the rules, so it is put there while nothing changes.
   */
  leaveUntranslated(from: Host, to: string, sourcePort: number): void {
    const there = `-s ${from.ip()} --sport ${sourcePort} -d ${to} --dport 80`;
    const back = `-r ${to} -q ${from.ip()} --reply-port-src 80 --reply-port-dst ${sourcePort}`;
    this.run('conntrack', `-I -p tcp --state SYN_SENT -t 120 ${there} ${back}`, '-F');
  }

  /** Asks, and nothing is wrong. */
  async expectWorks(destination: string, from: string): Promise<void> {
    const answer = await this.#world.ask(destination, from);
    expect(answer, answer.cause).toMatchObject({ verdict: 'works', code: null });
  }

  /** Asks for the code. */
  async expectCode(
    destination: string,
    from: string,
    code: CauseCode,
    {
      verdict = 'fails',
      flags = [],
    }: { readonly verdict?: Answer['verdict']; readonly flags?: readonly string[] } = {},
  ): Promise<Answer> {
    const answer = await this.#world.ask(destination, from, ...flags);
    expect(answer, answer.cause).toMatchObject({ verdict, code });
    return answer;
  }
}

/** Runs a line in a shell of a node. @returns what it printed; it has succeeded */
export function paste({ namespace }: LabNode, line: string): string {
  const path = `${dirname(builtProgram('nodeplane'))}:${process.env.PATH}`;
  const args = ['netns', 'exec', namespace.name, 'bash', '-c', line];
  const { status, stdout, stderr } = spawnSync('ip', args, { encoding: 'utf8', env: { ...process.env, PATH: path } });
  expect(status, `${line}: ${stderr}`).toBe(0);
  return stdout;
}

/** Whether a connection gets an answer. */
export async function answers(from: Host, ip: string, port = 80, protocol: 'TCP' | 'UDP' = 'TCP'): Promise<boolean> {
  const { kind } = await from.connect({ ip, port, protocol }, { timeoutMs: 1500 });
  return kind === 'answered';
}

/**
 * A process of a host has a socket with a source port and a destination, and tries to connect, until what is returned is called or the
 * test is over. One of UDP sends nothing.
 */
export async function keepSocket(
  faults: Faults,
  on: Host,
  { ip, port, protocol = 'TCP' }: Target,
  sourcePort: number,
): Promise<() => Promise<void>> {
  const of = JSON.stringify({ host: ip, port, localPort: sourcePort });
  const open = {
    TCP: `require('node:net').connect(${of}).on('error', () => {}); setTimeout(() => console.log(), 100);`,
    UDP: `const socket = require('node:dgram').createSocket('udp4');
      socket.bind(${sourcePort}, () => socket.connect(${port}, '${ip}', () => console.log()));`,
  };
  const args = ['netns', 'exec', on.namespace.name, process.execPath, '-e', open[protocol as keyof typeof open]];
  const child = spawn('ip', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  faults.undo(() => void child.kill());
  const ended = once(child, 'exit');
  await once(child.stdout, 'data');
  return async () => {
    child.kill();
    await ended;
  };
}

/** One answer of a pod's server gets a sequence number that lies 2^30 ahead, before the node tracks it. */
export function mangleOneAnswer(faults: Faults, node: LabNode, pod: Pod, port: number): void {
  const shift = [
    'tcp sequence & 0x40000000 == 0 tcp sequence set tcp sequence ^ 0x40000000 accept',
    'tcp sequence set tcp sequence ^ 0xc0000000',
  ];
  const hook = `type filter hook ingress device "${vethOf(node, pod)}" priority 0`;
  const first = `tcp sport ${port} tcp flags & psh == psh limit rate 1/hour burst 1 packets goto shift`;
  const chains = `chain shift { ${shift.join('; ')}; }\nchain in { ${hook}; ${first}; }`;
  faults.nft(`table netdev mangled {\n${chains} }`, 'netdev mangled');
}

/** The node's end of a pod's pair. */
export function vethOf(node: LabNode, pod: Pod): string {
  const index = JSON.parse(pod.namespace.run('ip', '-j', 'link', 'show', 'eth0'))[0].link_index as number;
  const links = JSON.parse(node.namespace.run('ip', '-j', 'link')) as { ifindex: number; ifname: string }[];
  return links.find(({ ifindex }) => ifindex === index)!.ifname;
}
