import { expect, it } from 'vitest';
import { diffHere } from '../diff-here.ts';
import { createNamespace, type TestNamespace } from '../namespace.ts';
import { patient } from '../patience.ts';
import { linksOf, reaches } from './fixture.ts';
import { createServedNode, installedConfig } from './served-node.ts';

// A node with an agent, whose pods' interfaces others change: what `nodeplane diff` says of that, and `--repair` makes of it.

export const LONG_MS = patient(120_000);

export interface LinkedPod {
  readonly namespace: TestNamespace;
  readonly config: object;
  /** The node's end. */
  readonly link: string;
  readonly ips: readonly string[];
}

/** A case: what others do, and what is told of it. */
export type Harm = readonly [name: string, harm: (pod: LinkedPod) => void, told: RegExp];

interface Part {
  readonly differences: readonly { object: string; ours?: string[]; theirs?: string[] }[];
}

export function createLinkWorld() {
  const served = createServedNode();
  const node = served.node.namespace;
  let made = 0;

  /** Status, and all differences of all parts: a line for each object, below it those of the kernel and what is meant. */
  async function diff(...flags: '--repair'[]) {
    const { exitCode, stdout, stderr } = await diffHere(node, { repair: flags.length > 0 });
    expect(stderr).toBe('');
    return { status: exitCode, text: textOf(stdout) };
  }
  function textOf(stdout: string): string {
    const { parts } = JSON.parse(stdout) as { parts: Part[] };
    const lines = parts.flatMap(({ differences }) =>
      differences.flatMap(({ object, ours = [], theirs = [] }) => [
        object,
        ...theirs.map((line) => `- ${line}`),
        ...ours.map((line) => `+ ${line}`),
      ]),
    );
    return lines.join('\n');
  }

  async function addPod(change: object = {}): Promise<LinkedPod> {
    const namespace = createNamespace(`pod${made++}`);
    const config = { ...installedConfig(served.conflist), ...change };
    const { status, json, stdout } = await served.call('ADD', namespace, { config });
    expect(status, stdout).toBe(0);
    const link = json!.interfaces!.find(({ name }) => name.startsWith('veth'))!.name;
    return { namespace, config, link, ips: json!.ips!.map(({ address }) => address.replace(/\/.*/, '')) };
  }

  async function delPod({ namespace, config }: LinkedPod): Promise<void> {
    expect(await served.call('DEL', namespace, { config })).toMatchObject({ status: 0 });
  }

  /** Both ways, in both families. */
  function expectPackets(pod: LinkedPod, other: LinkedPod): void {
    for (const [i, address] of pod.ips.entries()) {
      expect(reaches(node, address), `node to ${address}`).toBe(true);
      expect(reaches(other.namespace, address), `pod to ${address}`).toBe(true);
      expect(reaches(pod.namespace, other.ips[i]!), `${address} to pod`).toBe(true);
    }
  }

  return {
    served,
    node,
    diff,
    addPod,
    delPod,
    ip: (...args: string[]) => node.run('ip', ...args),
    sysctl: (name: string, value: number) => node.run('bash', '-c', `echo ${value} > /proc/sys/${name}`),

    /** Each case with two pods of a network: told, mended by one repair, and packets pass. */
    harms(change: object, cases: readonly Harm[]) {
      it.each(cases)(
        '%s',
        async (_, harm, told) => {
          const [pod, other] = [await addPod(change), await addPod(change)];
          try {
            expect(await diff()).toEqual({ status: 0, text: '' });
            harm(pod);
            const found = await diff();
            expect(found.text).toMatch(told);
            expect(found.status).toBe(1);
            // A question changes nothing.
            expect(await diff()).toEqual(found);
            expect(await diff('--repair')).toEqual({ status: 0, text: '' });
            expect(await diff()).toEqual({ status: 0, text: '' });
            expectPackets(pod, other);
          } finally {
            await delPod(pod);
            await delPod(other);
          }
          expect(linksOf(node).filter(({ ifname }) => ifname.startsWith('veth'))).toEqual([]);
          expect(await diff()).toEqual({ status: 0, text: '' });
        },
        LONG_MS,
      );
    },
  };
}
