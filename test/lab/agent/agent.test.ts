import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ServiceSpec } from '../../../src/kube/index.ts';
import { makeService, makeSlice } from '../../fakes/service-objects.ts';
import { manifestOf, nodeObject, saveManifest } from '../../samples/manifests.ts';
import { type Agent, createLab, type LabNode, type Pod, removeAll } from '../lab.ts';
import { builtProgram } from '../programs.ts';

const lab = createLab();
const node: LabNode = lab.addNode({ name: 'node-1' });
const [web, spare, client]: Pod[] = [node.addPod('web'), node.addPod('spare'), node.addPod('client')];
const manifests = join(lab.folder, 'manifests');
const SERVICE = { ip: '10.96.0.10', port: 80 };
let agent: Agent | undefined;

/** A Service with the given pods behind it, as one manifest. */
function manifest(pods: readonly Pod[], spec: Partial<ServiceSpec> = {}): string {
  const endpoints = pods.map((pod) => ({ addresses: [pod.ip()], nodeName: 'node-1' }));
  return manifestOf(
    makeService('demo/web', { clusterIP: SERVICE.ip, ports: [{ name: 'http', port: SERVICE.port }], ...spec }),
    makeSlice('demo/web', endpoints, { ports: [{ name: 'http', port: 8080 }] }),
  );
}

function save(text: string): void {
  saveManifest(manifests, 'web.yaml', text);
}

const whoAnswers = async () => {
  const outcome = await client!.connect(SERVICE, { timeoutMs: 300 });
  return outcome.kind === 'answered' ? outcome.by : outcome.kind;
};
const start = async (...flags: string[]) => {
  agent = await node.startAgent({ manifests, flags });
  return agent;
};

beforeAll(async () => {
  for (const pod of [web, spare]) await pod!.serve({ port: 8080 });
  mkdirSync(manifests);
  saveManifest(manifests, 'node.yaml', manifestOf(nodeObject(node)));
});
afterEach(async () => {
  await agent?.stop();
  agent = undefined;
});
afterAll(removeAll);

/** What the program ends with when it is run on the node. */
function run(...args: string[]) {
  const words = ['netns', 'exec', node.namespace.name, builtProgram('nodeplane'), ...args];
  const { status, stderr } = spawnSync('ip', words, { encoding: 'utf8' });
  return { status, stderr };
}

describe('nodeplane agent', () => {
  it('follows an edited manifest', async () => {
    save(manifest([web!]));
    await start();
    expect(await whoAnswers()).toBe('web');
    save(manifest([spare!]));
    await expect.poll(whoAnswers).toBe('spare');
    rmSync(join(manifests, 'web.yaml'));
    await expect.poll(whoAnswers).not.toBe('spare');
  });

  it('keeps traffic flowing on a manifest it cannot use, names file and line, and takes the mended one', async () => {
    save(manifest([web!]));
    const { logs, metrics } = await start();
    const problems = () => logs().filter((line) => line.level === 'error');
    save(manifest([spare!]).replace('port: 80\n', 'port: eighty\n'));
    await expect.poll(problems).toHaveLength(1);
    expect(problems()[0]).toMatchObject({
      where: 'web.yaml:10',
      field: 'spec.ports[0].port',
      object: 'Service demo/web',
    });
    expect(await metrics()).toContain('nodeplane_object_problems 1');
    expect(await whoAnswers()).toBe('web');

    save('kind: [Service\n');
    await expect.poll(problems).toHaveLength(2);
    expect(problems()[1]!.where).toMatch(/^web\.yaml:\d+$/);
    expect(await whoAnswers()).toBe('web');

    save(manifest([spare!]));
    await expect.poll(whoAnswers).toBe('spare');
    expect(await metrics()).toContain('nodeplane_object_problems 0');
  });

  it('serves what is right among ten mistakes, and names each in one line, once', async () => {
    const other = (name: string, ip: string, spec: Partial<ServiceSpec> = {}) =>
      manifestOf(makeService(`demo/${name}`, { clusterIP: ip, ports: [{ name: 'http', port: 80 }], ...spec }));
    const wrong: Record<string, string> = {
      'a1.yaml': other('a1', '10.96.1.1').replace('port: 80', 'port: 80\n      target_port: 8080'),
      'a2.yaml': other('a2', '10.96.1.2').replace('kind: Service', 'kind: service'),
      'a3.yaml': other('a3', '10.96.1.3', { externalIPs: ['192.0.2'] }),
      'a4.yaml': other('a4', '10.96.1.4', { loadBalancerSourceRanges: ['192.0.2.0'] }),
      'a5.yaml': other('a5', '10.96.1.5').replace('port: 80', 'port: 80000'),
      'a6.yaml': other('a6', '10.96.1.6').replace('  clusterIP:', '\tclusterIP:'),
      'a7.yaml': manifestOf(makeSlice('demo/wbe', [])),
      'a8.yaml': manifestOf(makeSlice('demo/a1', [])).replace('discovery.k8s.io/v1', 'discovery.k8s.io/v1beta1'),
      'z9.yaml': other('z9', SERVICE.ip),
      'web2.yaml': other('web', '10.96.1.10'),
    };
    for (const [name, text] of Object.entries(wrong)) saveManifest(manifests, name, text);
    save(manifest([web!]));
    // In a log of its own: that of the node has what other agents told.
    agent = await node.startAgent({ manifests, log: 'ten-mistakes' });
    const { logs, metrics } = agent;
    const told = () => logs().filter(({ where }) => typeof where === 'string');
    await expect.poll(() => told().length).toBeGreaterThanOrEqual(10);
    expect(await whoAnswers()).toBe('web');
    const files = () => told().map(({ where }) => String(where).replace(/:\d+$/, ''));
    expect(files().sort()).toEqual(Object.keys(wrong).sort());
    for (const line of told()) expect(String(line.message)).not.toBe('');
    expect(await metrics()).toContain('nodeplane_object_problems 5');
    expect(await metrics()).toContain('nodeplane_object_doubts 5');

    // What changes elsewhere does not say it again.
    save(manifest([spare!]));
    await expect.poll(whoAnswers).toBe('spare');
    expect(told()).toHaveLength(10);
    for (const name of Object.keys(wrong)) rmSync(join(manifests, name));
    await expect.poll(metrics).toContain('nodeplane_object_doubts 0');
  });

  it('leaves the rules in place when it stops, and a restart writes nothing that is right already', async () => {
    save(manifest([web!, spare!]));
    await start();
    const rules = () => node.iptablesSave('nft').replace(/^#.*\n/gm, '');
    const before = rules();
    expect(before).toContain('demo/web:http');
    expect(await agent!.stop()).toBe(0);
    expect(rules()).toBe(before);
    expect(['web', 'spare']).toContain(await whoAnswers());

    const { metrics } = await start();
    expect(rules()).toBe(before);
    for (const table of ['filter', 'nat']) {
      expect(await metrics()).toContain(
        `kubeproxy_sync_proxy_rules_iptables_last{ip_family="IPv4",table="${table}"} 0`,
      );
    }
  });

  it('answers health, mode and metrics where kube-proxy does', async () => {
    save(manifest([web!]));
    const { metrics } = await start();
    const get = async (url: string) => await node.httpGet(url);
    expect((await get('http://127.0.0.1:10256/livez')).status).toBe(200);
    const healthz = await get(`http://${node.ip()}:10256/healthz`);
    expect(healthz.status).toBe(200);
    expect(JSON.parse(healthz.body)).toMatchObject({
      nodeEligible: true,
      healthy: true,
      status: { IPv4: { healthy: true }, IPv6: { healthy: true } },
    });
    expect((await get('http://127.0.0.1:10249/proxyMode')).body).toBe('iptables');
    // This kernel has nfacct: the rules count, and the counts are shown.
    expect(await metrics()).toMatch(/^kubeproxy_iptables_ct_state_invalid_dropped_packets_total 0$/m);
    expect(await metrics()).toMatch(/^kubeproxy_iptables_localhost_nodeports_accepted_packets_total 0$/m);
    expect(await metrics()).toMatch(/^kubeproxy_sync_proxy_rules_last_timestamp_seconds\{ip_family="IPv6"\} \d/m);
  });

  it('answers load balancers on a Service’s health check port, by the endpoints on this node', async () => {
    const loadBalancer = (...pods: Pod[]) =>
      manifest(pods, { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 31999 });
    save(loadBalancer(web!, spare!));
    await start();
    const ask = async () => {
      const { status, body } = await node.httpGet(`http://${node.ip()}:31999/`);
      return `${status} ${JSON.parse(body).localEndpoints}`;
    };
    await expect.poll(ask).toBe('200 2');
    save(loadBalancer());
    await expect.poll(ask).toBe('503 0');
    save(manifest([web!]));
    await expect.poll(() => ask().catch((error: Error) => error.message)).toContain('ECONNREFUSED');
  });

  it('is refused, with every reason, when it cannot run', () => {
    const badSettings = run('agent', '--proxy-mode', 'magic', '--cluster-cidr', '10.0.0.0');
    expect(badSettings.status).toBe(1);
    for (const reason of [/proxy-mode.*magic/, /cluster-cidr.*10\.0\.0\.0/]) expect(badSettings.stderr).toMatch(reason);
    expect(run('agent', '--proxy-mode', 'ipvs', '--ipvs-scheduler', 'none', '--manifests', manifests)).toEqual({
      status: 1,
      stderr: expect.stringMatching(/--ipvs-scheduler.*"none"/),
    });
    expect(run('agent', '--manifests', '/nodeplane/none')).toEqual({
      status: 1,
      stderr: expect.stringMatching(/FATAL .*Cannot read the folder of manifests .*\/nodeplane\/none.*code=ERR_CONFIG/),
    });
    // What is to be left alone is not removed because it was written wrongly.
    expect(run('cleanup', '--ipvs-exclude-cidrs', '10.96.0.0')).toEqual({
      status: 1,
      stderr: expect.stringContaining('10.96.0.0'),
    });
  });
});

describe('nodeplane cleanup', () => {
  it('is refused while an agent works, for Services would stop until it looks again', async () => {
    save(manifest([web!]));
    await start();
    const before = node.iptablesSave('nft').replaceAll(/^#.*\n/gm, '');
    for (const flags of [[], ['--leave-kube-proxy'], ['--mode', 'iptables']]) {
      expect(run('cleanup', ...flags)).toEqual({
        status: 1,
        stderr: expect.stringMatching(
          /An agent works on this node .*: process \d+ \(.*\)\. End it first, or give --force/,
        ),
      });
    }
    // As from another container.
    const elsewhere = ['unshare', '--pid', '--fork', '--mount-proc', builtProgram('nodeplane'), 'cleanup'];
    const words = ['netns', 'exec', node.namespace.name, ...elsewhere];
    expect(spawnSync('ip', words, { encoding: 'utf8' })).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('An agent works on this node'),
    });
    expect(node.iptablesSave('nft').replaceAll(/^#.*\n/gm, '')).toBe(before);
    expect(run('cleanup', '--dry-run')).toMatchObject({ status: 0 });
    expect(run('cleanup', '--mode', 'nftables')).toMatchObject({ status: 0 });
    expect(run('cleanup', '--routes-only')).toMatchObject({ status: 0 });
    await agent!.stop();
    await start('--routes', 'host-gw');
    for (const flags of [['--routes-only'], ['--mode', 'nftables', '--routes']]) {
      expect(run('cleanup', ...flags)).toEqual({
        status: 1,
        stderr: expect.stringContaining('An agent works on this node and would write its routes again: process '),
      });
    }
  });

  it('removes what is ours and leaves what is not', async () => {
    node.namespace.run('iptables-nft', '-A', 'INPUT', '-p', 'tcp', '--dport', '22', '-j', 'ACCEPT');
    save(manifest([web!]));
    await start();
    await agent!.stop();
    node.namespace.run(builtProgram('nodeplane'), 'cleanup');
    for (const family of ['IPv4', 'IPv6'] as const)
      expect(node.iptablesSave('nft', family)).not.toMatch(/KUBE-(?!FIREWALL)/);
    expect(node.iptablesSave('nft')).toContain('-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT');
    // Looking for rules of the other variant must not load its tables into the kernel.
    expect(node.namespace.run('cat', '/proc/net/ip_tables_names')).toBe('');
  });
});

describe('the programs', () => {
  it('run from any folder and through a symbolic link', () => {
    const elsewhere = join(lab.folder, 'bin');
    mkdirSync(elsewhere);
    execFileSync('ln', ['-s', builtProgram('nodeplane'), join(elsewhere, 'np')]);
    const version = execFileSync(join(elsewhere, 'np'), ['--version'], { cwd: '/', encoding: 'utf8' }).trim();
    expect(version).toBe(JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')).version);
    expect(execFileSync(builtProgram('nodeplane'), ['--help'], { cwd: '/', encoding: 'utf8' })).toMatch(
      /agent.*cni.*cleanup/s,
    );
  });
});
