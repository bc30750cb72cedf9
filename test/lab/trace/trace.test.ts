import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TraceReport } from '../../../src/agent/trace/index.ts';
import { withPort } from '../../../src/core/index.ts';
import { watchLog } from '../../../src/netlink/log/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { makeService, makeSlice } from '../../fakes/service-objects.ts';
import { manifestOf, saveManifest } from '../../samples/manifests.ts';
import { type Agent, type Pod, removeAll } from '../lab.ts';
import { own } from '../namespace.ts';
import { patient } from '../patience.ts';
import { builtProgram } from '../programs.ts';
import { createStatusNode, type StatusNode } from '../status/node.ts';
import { beginTrace, traceOf } from './live-trace.ts';

const LONG_MS = patient(300_000);
/** Of shop/search, whose only endpoint is the first pod. */
const SERVICE = { ip: '10.96.0.40', port: 80 };

let lab: StatusNode;
let client: Pod;
let agent: Agent | undefined;

beforeAll(async () => {
  lab = await createStatusNode();
  client = lab.node.addPod('client');
}, LONG_MS);
afterAll(async () => {
  await agent?.stop();
  removeAll();
});

const begin = (...args: string[]) => beginTrace(lab.node, ...args);
const traced = (args: readonly string[], send: () => Promise<unknown>) => traceOf(lab.node, args, send);
const tables = () => lab.node.namespace.run('nft', 'list', 'tables');
const connect = (target = SERVICE) => client.connect(target, { timeoutMs: 1500 });
const endpointPattern = () => lab.pods[0]!.ip().replaceAll('.', '\\.');

/** What the agent says that others did. */
function ruleChanges(): readonly { readonly program: string; readonly what: string }[] {
  const command = ['netns', 'exec', lab.node.namespace.name, builtProgram('nodeplane'), 'status', '-o', 'json'];
  const { stdout } = spawnSync('ip', command, { encoding: 'utf8' });
  return (JSON.parse(stdout) as { ruleChanges: { program: string; what: string }[] }).ruleChanges;
}

/** A Service's flow, in every way of writing its rules. */
function followsServices(): void {
  it(
    'follows a connection to a Service to its endpoint and back',
    async () => {
      const { status, stdout } = await traced([client.ip(), 'shop/search', '--live', '60s'], async () => connect());
      expect(stdout).toMatch(new RegExp(`^WORKS  ${client.ip()} -> shop/search 10\\.96\\.0\\.40:80/tcp, watched for`));
      const flow = new RegExp(
        `^  ${client.ip()}:\\d+ SYN -> DNAT (${endpointPattern()}):8080 \\(shop/search\\) -> cni0; answered with SYN-ACK after`,
        'm',
      );
      expect(stdout).toMatch(flow);
      expect(status).toBe(0);
      expect(tables()).not.toContain('nodeplane-trace');
    },
    LONG_MS,
  );
}

describe('in mode nftables', () => {
  beforeAll(async () => {
    agent = await lab.start('--proxy-mode', 'nftables');
  }, LONG_MS);

  followsServices();

  it(
    'names the rule of others that drops, and who wrote it is remembered',
    async () => {
      const rules =
        'add table inet fence; add chain inet fence gate { type filter hook forward priority 10; }; add rule inet fence gate tcp dport 8080 counter drop comment "no web"';
      lab.node.namespace.run('nft', rules);
      const { status, stdout } = await traced([client.ip(), '10.96.0.40:80', '--live', '60s', '-o', 'json'], async () =>
        connect(),
      );
      lab.node.namespace.run('nft', 'delete', 'table', 'inet', 'fence');
      const report = JSON.parse(stdout) as TraceReport;
      expect(report).toMatchObject({
        schema: 'nodeplane/trace/v1',
        verdict: 'fails',
        flows: [{ fate: 'dropped', drop: { family: 'inet', table: 'fence', chain: 'gate' } }],
        incomplete: [],
      });
      expect(report.flows[0]!.drop!.rule).toMatch(/tcp dport 8080 counter.* drop comment "no web"/);
      expect(report.flows[0]!.endpoint).toMatch(new RegExp(`^(${endpointPattern()}):8080$`));
      expect(status).toBe(1);
      const changes = ruleChanges();
      expect(changes).toContainEqual(
        expect.objectContaining({ program: 'nft', what: expect.stringContaining('added chain inet fence gate') }),
      );
      expect(changes).toContainEqual(
        expect.objectContaining({ what: expect.stringContaining('added table inet nodeplane-trace') }),
      );
      expect(changes.every(({ what }) => !what.includes(' kube'))).toBe(true);
      expect(agent!.logs()).toContainEqual(expect.objectContaining({ msg: 'A live trace was begun on this node' }));
    },
    LONG_MS,
  );

  it(
    'says when nobody answers',
    async () => {
      const [server] = lab.pods;
      const silent = 'add table ip mute; add chain ip mute in { type filter hook input priority 0; policy drop; }';
      server!.namespace.run('nft', silent);
      const target = { ip: server!.ip(), port: 8080 };
      const { status, stdout } = await traced([client.ip(), `${target.ip}:8080`, '--live', '8s'], () =>
        connect(target),
      );
      server!.namespace.run('nft', 'delete', 'table', 'ip', 'mute');
      // Pods of one bridge are neighbours: their packets pass the node's rules with br_netfilter alone.
      expect(stdout).toMatch(/^(FAILS|UNKNOWN) /);
      if (status === 1) expect(stdout).toMatch(/; no reply in \d/);
      else expect(stdout).toContain("reached this node's rules");
    },
    LONG_MS,
  );

  it(
    'says when nothing came',
    async () => {
      const { status, stdout } = await traced(['any', '10.96.0.40:80', '--live', '300ms'], async () => {});
      expect(stdout).toMatch(/^UNKNOWN .*\n {2}Nothing from anybody to there reached this node's rules/);
      expect(status).toBe(2);
    },
    LONG_MS,
  );

  it(
    'connects from the pod when asked to',
    async () => {
      const { status, stdout } = await traced(
        [client.ip(), 'shop/search:http', '--probe', '--live', '60s'],
        async () => {},
      );
      expect(stdout).toMatch(new RegExp(`  probe from ${client.ip()}: connected`));
      expect(stdout).toMatch(/; answered with SYN-ACK/);
      expect(status).toBe(0);
    },
    LONG_MS,
  );

  it(
    'sends a datagram from the pod when asked to, and waits for the answer',
    async () => {
      const [server] = lab.pods;
      await server!.serve({ port: 5353, protocol: 'UDP' });
      // On all addresses it would answer by that of the bridge, which no client takes for the one it asked.
      await lab.node.serve({ port: 5353, protocol: 'UDP', ip: lab.node.ip() });
      const ports = [{ port: 53, protocol: 'UDP' as const }];
      const dns = makeService('shop/dns', { clusterIP: '10.96.0.70', ports });
      const slice = makeSlice('shop/dns', [server!.ip()], { ports: [{ port: 5353, protocol: 'UDP' }] });
      saveManifest(lab.manifests, 'dns.yaml', manifestOf(dns, slice));
      const service = { ip: '10.96.0.70', port: 53, protocol: 'UDP' } as const;
      await expect.poll(() => client.connect(service)).toMatchObject({ kind: 'answered' });
      const flags = ['--proto', 'udp', '--probe', '--payload', 'who', '--live', '60s'];
      for (const to of [`${lab.node.ip()}:5353`, 'shop/dns:53']) {
        const { status, stdout } = await traced([client.ip(), to, ...flags], async () => {});
        expect(stdout).toMatch(new RegExp(`  probe from ${client.ip()}: answered`));
        expect(status).toBe(0);
      }
    },
    LONG_MS,
  );

  it(
    'tells that ICMP refuses a datagram, of either family, by a pod and by the node',
    async () => {
      const [server] = lab.pods;
      const [from, from6] = [client.ip(), client.ip('IPv6')];
      const flags = ['--proto', 'udp', '--probe', '--payload', 'who', '--live', '60s'];
      for (const [source, to] of [
        [from, server!.ip()],
        [from, lab.node.ip()],
        [from6, lab.node.ip('IPv6')],
      ] as const) {
        const { status, stdout } = await traced([source, withPort(to, 5999), ...flags], async () => {});
        // Pods of one bridge are neighbours: their packets pass the node's rules with br_netfilter alone.
        if (to === server!.ip() && stdout.startsWith('UNKNOWN')) continue;
        expect(stdout).toContain(`; refused with ICMP port-unreachable from ${to} after `);
        expect(stdout).toContain(`  probe from ${source}: ECONNREFUSED`);
        expect(status).toBe(1);
      }
    },
    LONG_MS,
  );

  it(
    'follows IPv6 as well, to the node itself',
    async () => {
      const { node } = lab;
      await node.serve({ port: 9090 });
      const [from, to] = [client.ip('IPv6'), node.ip('IPv6')];
      const tcp = await traced([from, `[${to}]:9090`, '--live', '60s'], () => client.connect({ ip: to, port: 9090 }));
      expect(tcp.stdout).toContain(` SYN -> [${to}]:9090; answered with SYN-ACK`);
    },
    LONG_MS,
  );

  it(
    'follows what the node sends to itself on where it comes in, and what was only just sent is no failure',
    async () => {
      const { node } = lab;
      await node.serve({ port: 9091 });
      const target = { ip: node.ip(), port: 9091 };
      const question = [node.ip(), `${target.ip}:9091`, '--live'];
      const nobody = await traced([...question, '60s'], () => node.connect(target));
      expect(nobody.stdout).toMatch(/^WORKS .*\n.* -> lo; answered with SYN-ACK/);
      for (const [hook, port] of [
        ['prerouting', 'dport'],
        ['input', 'dport'],
        ['input', 'sport'],
      ] as const) {
        const fence = `type filter hook ${hook} priority 0; tcp ${port} 9091 drop`;
        node.namespace.run('nft', `table inet fence { chain gate { ${fence}\n}\n}`);
        const { stdout } = await traced([...question, '8s'], () => node.connect(target, { timeoutMs: 500 }));
        node.namespace.run('nft', 'delete', 'table', 'inet', 'fence');
        expect(stdout).toContain(`dropped in table inet fence, chain gate, by rule 2: tcp ${port} 9091 drop`);
      }
    },
    LONG_MS,
  );

  it(
    'leaves nothing when it is killed, and is the only one meanwhile',
    async () => {
      const first = await begin('any', '10.96.0.40:80', '--live', '300s');
      const second = await (await begin('any', '10.96.0.40:80', '--live', '1s')).ended;
      expect(second).toMatchObject({ status: 70, stderr: expect.stringContaining('another one runs') });
      expect(tables()).toContain('nodeplane-trace');
      first.child.kill('SIGKILL');
      await first.ended;
      expect(tables()).not.toContain('nodeplane-trace');
      // Nobody has this address, so that the attempt goes on.
      const nobody = '10.244.1.250';
      const attempts = () =>
        spawnSync('ps', ['-eo', 'args'], { encoding: 'utf8' })
          .stdout.split('\n')
          .filter((args) => args.includes(`"source":"${client.ip()}"`) && args.includes(`"ip":"${nobody}"`));
      const flags = ['--proto', 'udp', '--probe', '--payload', 'who', '--live', '300s'];
      const third = await begin(client.ip(), `${nobody}:9`, ...flags);
      await expect.poll(attempts, { timeout: LONG_MS }).toHaveLength(1);
      third.child.kill('SIGKILL');
      await third.ended;
      await expect.poll(attempts, { timeout: patient(10_000) }).toEqual([]);
    },
    LONG_MS,
  );

  it.each([
    ['a source that is no address', ['web-1', '10.96.0.40:80'], 64],
    ['a Service that is not there', ['any', 'shop/nobody'], 64],
    ['a time that is none', ['any', '10.96.0.40:80', '--live', 'soon'], 64],
  ])('refuses %s', async (_, args, expected) => {
    const { ended } = await begin(...args);
    expect((await ended).status).toBe(expected);
  });
});

describe('in mode iptables, variant nft', () => {
  beforeAll(async () => {
    await agent?.stop();
    agent = await lab.start('--proxy-mode', 'iptables');
  }, LONG_MS);
  followsServices();

  it(
    'does not take what its own agent writes for a change by others',
    async () => {
      expect(ruleChanges().filter(({ program }) => program.startsWith('iptables'))).toEqual([]);
    },
    LONG_MS,
  );
});

describe('with rules of legacy iptables', () => {
  beforeAll(async () => {
    await agent?.stop();
    agent = undefined;
  }, LONG_MS);

  it(
    'sees that they translate, names the rule that drops, and gives the log back as it was',
    async () => {
      const [server] = lab.pods;
      const { namespace } = lab.node;
      const target = { ip: '10.97.0.1', port: 81 };
      const translated = ['-d', `${target.ip}/32`, '-p', 'tcp', '--dport', '81', '-j', 'DNAT'];
      const logger = () => namespace.run('sysctl', '-n', 'net.netfilter.nf_log.2').trim();
      const before = logger();
      expect(before).not.toBe('nfnetlink_log');
      namespace.run('iptables-legacy', '-t', 'nat', '-A', 'PREROUTING', ...translated, '--to', `${server!.ip()}:8080`);
      const question = [client.ip(), `${target.ip}:81`, '--live'];
      const works = await traced([...question, '60s'], () => connect(target));
      expect(works.stdout).toMatch(new RegExp(` SYN -> DNAT ${server!.ip()}:8080 -> cni0; answered`));
      expect(works.status).toBe(0);
      namespace.run('iptables-legacy', '-N', 'FENCE');
      namespace.run('iptables-legacy', '-A', 'FORWARD', '-j', 'FENCE');
      namespace.run('iptables-legacy', '-A', 'FENCE', '-p', 'udp', '-j', 'ACCEPT');
      namespace.run('iptables-legacy', '-A', 'FENCE', '-p', 'tcp', '--dport', '8080', '-j', 'DROP');
      const fails = await traced([...question, '8s'], () => connect(target));
      expect(fails.stdout).toMatch(
        /; lost in hook forward, by legacy iptables, table filter, chain FENCE: rule 2: -A FENCE -p tcp .*-j DROP\n/,
      );
      expect(fails.stdout).not.toContain('incomplete');
      expect(fails.status).toBe(1);
      expect(logger()).toBe(before);
      // It needs no rule there.
      expect(namespace.run('iptables-legacy-save')).not.toContain('TRACE');
      const { child, ended } = await begin(...question, '60s');
      await expect.poll(logger, { timeout: LONG_MS }).toBe('nfnetlink_log');
      child.kill('SIGKILL');
      await ended;
      expect(logger()).toBe('nfnetlink_log');
      // The next trace finds what one that was killed has left.
      await traced([...question, '8s'], () => connect(target));
      expect(logger()).toBe(before);
    },
    LONG_MS,
  );

  it(
    'names rules that count as they drop where somebody else has the log',
    async () => {
      const { namespace } = lab.node;
      const other = inNetns(namespace.path, () => watchLog(0, () => {}));
      own(() => other.close());
      const target = { ip: '10.97.0.1', port: 81 };
      const { stdout } = await traced([client.ip(), `${target.ip}:81`, '--live', '8s'], () => connect(target));
      expect(stdout).toMatch(/; lost in hook forward, by none of nf_tables' rules/);
      expect(stdout).toMatch(/legacy iptables, table filter: \d+ packets, .* -A FENCE .*-j DROP/);
      expect(stdout).toMatch(
        /incomplete: of the rules of legacy iptables only what they count is known: .*another program listens/,
      );
    },
    LONG_MS,
  );
});
