import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Agent, removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { builtProgram } from '../programs.ts';
import { createStatusNode, type StatusNode } from './node.ts';

/** Each look is a process of its own. */
const LONG_MS = patient(300_000);

let lab: StatusNode;
let agent: Agent | undefined;

beforeAll(async () => {
  lab = await createStatusNode();
}, LONG_MS);
afterEach(async () => {
  await agent?.stop();
  agent = undefined;
});
afterAll(removeAll);

function inNode(...command: string[]) {
  const { status, stdout, stderr } = spawnSync('ip', ['netns', 'exec', lab.node.namespace.name, ...command], {
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}
const diff = (...flags: string[]) => inNode(builtProgram('nodeplane'), 'diff', ...flags);
const parts = () => JSON.parse(diff('-o', 'json').stdout).parts as { name: string; verdict: string; total: number }[];
const start = async (mode: string, ...flags: string[]) => {
  // It is the question that is to find what was changed, not the look now and then.
  agent = await lab.start('--proxy-mode', mode, '--iptables-sync-period', '1h', ...flags);
  return agent;
};

describe('nodeplane diff', () => {
  it.each([
    ['legacy', ['PREROUTING', 'MARK', 'endpoint', 'strange']],
    // The kernel tells of the jump that is gone from iptables-nft: nobody has to ask.
    ['nft', ['MARK', 'endpoint', 'strange']],
  ])(
    'names rules of iptables-%s that were deleted, added and changed by hand, and has them repaired',
    async (variant, changes) => {
      await start('iptables', '--iptables-variant', variant);
      const equal = diff();
      expect(equal.stderr).toBe('');
      expect(equal.stdout).toMatch(
        /^node-1: the kernel against what is meant, mode iptables, .*\nServices IPv4: equal\n/,
      );
      expect(equal.status).toBe(0);
      const program = `iptables-${variant}`;
      const nat = (...args: string[]) => inNode(program, '-w', '-t', 'nat', ...args);
      const rules = nat('-S').stdout.split('\n');
      const endpoint = rules.find((rule) => rule.startsWith('-A KUBE-SVC') && rule.includes('DNAT'))!;
      const chain = endpoint.split(' ')[1]!;
      const number = rules.filter((rule) => rule.startsWith(`-A ${chain} `)).indexOf(endpoint) + 1;
      const byHand: Readonly<Record<string, { readonly args: readonly string[]; readonly told: RegExp }>> = {
        PREROUTING: {
          args: ['-D', 'PREROUTING', '1'],
          told: /\n {2}\+ jump nat PREROUTING -> KUBE-SERVICES\n {6}\+ -A PREROUTING .*-j KUBE-SERVICES\n/,
        },
        MARK: {
          args: ['-A', 'KUBE-MARK-MASQ', '-s', '203.0.113.9', '-j', 'RETURN'],
          told: /\n {2}~ nat chain KUBE-MARK-MASQ\n {6}- -A KUBE-MARK-MASQ -s 203\.0\.113\.9\/32 -j RETURN\n/,
        },
        endpoint: {
          args: ['-R', chain, String(number), '-j', 'RETURN'],
          told: new RegExp(`\n {2}~ nat chain ${chain}\n {6}- -A ${chain} -j RETURN\n {6}\\+ -A ${chain} `),
        },
        strange: { args: ['-N', 'KUBE-SVC-STRANGE'], told: /\n {2}- nat chain KUBE-SVC-STRANGE\n/ },
      };
      for (const change of changes) expect(nat(...byHand[change]!.args)).toMatchObject({ status: 0 });
      const { status, stdout } = diff();
      expect(status).toBe(1);
      expect(stdout).toContain(`Services IPv4: ${changes.length} differences\n`);
      for (const change of changes) expect(stdout).toMatch(byHand[change]!.told);
      // A question changes nothing.
      expect(diff().status).toBe(1);
      const repaired = diff('--repair');
      expect(repaired.stdout).toContain(`Services IPv4: equal, ${changes.length} differences repaired\n`);
      expect(repaired.stdout).toContain('\n  ✓ nat chain KUBE-SVC-STRANGE\n');
      expect(repaired.status).toBe(0);
      expect(diff().status).toBe(0);
      expect(nat('-S').stdout.split('\n').sort()).toEqual(rules.sort());
    },
    LONG_MS,
  );

  it(
    'is not needed for a jump that iptables-nft lost',
    async () => {
      await start('iptables', '--iptables-variant', 'nft');
      const jumps = () => inNode('iptables-nft', '-t', 'nat', '-S', 'PREROUTING').stdout;
      const before = jumps();
      expect(before).toContain('-j KUBE-SERVICES');
      expect(inNode('iptables-nft', '-t', 'nat', '-D', 'PREROUTING', '1')).toMatchObject({ status: 0 });
      await expect.poll(jumps, { timeout: patient(10_000) }).toBe(before);
      await expect.poll(() => diff().status, { timeout: LONG_MS }).toBe(0);
    },
    LONG_MS,
  );

  it(
    'compares routes, their rules and the rules of nf_tables, which are repaired before anybody asks',
    async () => {
      await start('nftables', '--routes', 'host-gw');
      expect(parts().filter(({ name }) => name.includes('IPv4') || name.includes('rules'))).toMatchObject([
        { name: 'Services IPv4', verdict: 'equal' },
        { name: 'routes IPv4', verdict: 'equal' },
        { name: 'rules beside the routes', verdict: 'equal' },
      ]);
      const flush = inNode('nft', 'flush', 'ruleset');
      expect(flush).toMatchObject({ status: 0 });
      await expect.poll(() => diff().stdout, { timeout: LONG_MS }).toContain('Services IPv4: equal\n');
      expect(parts().find(({ name }) => name === 'rules beside the routes')).toMatchObject({ verdict: 'equal' });
      // The Nodes have pod CIDRs of IPv4 alone.
      expect(parts().map(({ name }) => name)).not.toContain('routes IPv6');
      expect(diff().status).toBe(0);
    },
    LONG_MS,
  );

  it(
    'has a route back as it was that others gave an MTU or a source address',
    async () => {
      await start('nftables', '--routes', 'host-gw');
      const route = () => inNode('ip', 'route', 'show', '10.244.2.0/24', 'proto', '78').stdout.trim();
      const before = route();
      const words = before.split(' ').filter((word) => word !== '');
      const isObject = words.includes('nhid');
      const way = isObject ? words.slice(1, 3) : words.slice(1, 5);
      for (const added of [
        ['mtu', '600'],
        ['src', lab.node.ip()],
      ]) {
        const change = ['ip', 'route', 'change', words[0]!, ...way, 'proto', '78', ...added];
        expect(inNode(...change)).toMatchObject({ status: 0 });
        await expect.poll(route, { timeout: patient(30_000) }).toBe(before);
      }
    },
    LONG_MS,
  );

  it(
    'is answered to root alone, at a socket that goes with the agent',
    async () => {
      const running = await start('nftables');
      const { stdout } = inNode('ss', '-xlH');
      const path = stdout
        .split(/\s+/)
        .find((word) => /^\/run\/nodeplane\/agent-\d+\.sock$/.test(word) && isOf(word, running));
      expect(path).toBeDefined();
      expect(statSync(path!).mode & 0o777).toBe(0o600);
      const url = 'http://127.0.0.1:10249/diff';
      expect((await lab.node.httpGet(url)).status).toBe(404);
      await agent?.stop();
      agent = undefined;
      expect(statSync(path!, { throwIfNoEntry: false })).toBeUndefined();
      const { status, stderr } = diff();
      expect(status).toBe(69);
      expect(stderr).toMatch(
        /^nodeplane: Cannot ask the agent at "\/run\/nodeplane\/agent-\d+\.sock": .*\(ERR_DIFF\)\n$/,
      );
    },
    LONG_MS,
  );

  it(
    'says soon that an agent hangs',
    async () => {
      const { pid } = await start('nftables');
      process.kill(pid, 'SIGSTOP');
      try {
        const { status, stdout, stderr } = diff();
        expect({ status, stdout }).toEqual({ status: 69, stdout: '' });
        expect(stderr).toContain('no answer within 20 s. Somebody listens there and says nothing: the agent hangs');
      } finally {
        process.kill(pid, 'SIGCONT');
      }
      expect(diff()).toMatchObject({ status: 0, stderr: '' });
    },
    LONG_MS,
  );
});

/** Whether a path is that of the agent's own namespace. */
function isOf(path: string, { pid }: Agent): boolean {
  const { stdout } = spawnSync('readlink', [`/proc/${pid}/ns/net`], { encoding: 'utf8' });
  return path.includes(`-${/\d+/.exec(stdout)![0]}.`);
}
