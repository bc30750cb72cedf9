import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';

// The alerts of deploy/monitoring by Debian's promtool: each is silent below its threshold and before its time, and fires after.

const PROMTOOL = fileURLToPath(new URL('../../../.cache/prometheus/usr/bin/promtool', import.meta.url));
const RULES = new URL('../../../deploy/monitoring/rules.yaml', import.meta.url);
const SOURCE = fileURLToPath(new URL('../../../src', import.meta.url));
const OPERATIONS = new URL('../../../docs/operations.md', import.meta.url);

interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly for?: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

const groups: readonly { readonly rules: readonly Rule[] }[] = parse(readFileSync(RULES, 'utf8')).spec.groups;
const alerts = groups.flatMap(({ rules }) => rules.filter(({ alert }) => alert !== undefined));
const folder = mkdtempSync(join(tmpdir(), 'nplab-alerts-'));
const rulesFile = join(folder, 'rules.yaml');
writeFileSync(rulesFile, stringify({ groups }));
afterAll(() => rmSync(folder, { recursive: true }));

type Series = Readonly<Record<string, string>>;
const NODE = 'job="kube-proxy",instance="node-1"';
const FAMILY = `${NODE},ip_family="IPv4"`;

/** By alert: series that make it fire, and such that never do; in steps of a minute. */
const CASES: Readonly<Record<string, { readonly fires: Series; readonly silent: Series }>> = {
  NodeplaneSyncStale: {
    fires: {
      [`kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{${FAMILY}}`]: '1000+60x600',
      [`kubeproxy_sync_proxy_rules_last_timestamp_seconds{${FAMILY}}`]: '1000x600',
    },
    // A healthy node on which nothing happens.
    silent: {
      [`kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{${FAMILY}}`]: '1000x600',
      [`kubeproxy_sync_proxy_rules_last_timestamp_seconds{${FAMILY}}`]: '1001x600',
    },
  },
  NodeplaneSyncFailing: counter(`nodeplane_sync_failures_total{${FAMILY},stage="commit"}`),
  NodeplaneServicePortsLeftOut: gauge(`nodeplane_service_ports_left_out{${FAMILY}}`, 1, 0),
  NodeplaneServicesRestricted: {
    fires: { [`nodeplane_services_restricted{${FAMILY},reason="taken"}`]: '1x600' },
    // Another reason is none to wake anybody.
    silent: { [`nodeplane_services_restricted{${FAMILY},reason="elsewhere"}`]: '1x600' },
  },
  NodeplaneRulesDisturbed: counter(`nodeplane_drift_found_total{${FAMILY}}`, '0+1x600', '0 1x600'),
  NodeplaneApiServerUnheard: gauge(`nodeplane_watch_age_seconds{${NODE},resource="services"}`, 601, 599),
  NodeplaneObjectsUnreadable: gauge(`nodeplane_object_problems{${NODE}}`, 1, 0),
  NodeplaneAddFailing: {
    fires: { [`nodeplane_cni_requests_total{${NODE},verb="ADD",code="11"}`]: '0+1x600' },
    silent: {
      [`nodeplane_cni_requests_total{${NODE},verb="ADD",code="0"}`]: '0+1x600',
      [`nodeplane_cni_requests_total{${NODE},verb="CHECK",code="11"}`]: '0+1x600',
    },
  },
  NodeplaneDelNotSettled: gauge(`nodeplane_cni_kept_requests{${NODE}}`, 1, 0),
  NodeplaneAddressesScarce: {
    fires: {
      [`nodeplane_pod_addresses{${FAMILY},state="free"}`]: '4x600',
      [`nodeplane_pod_addresses{${FAMILY},state="used"}`]: '96x600',
    },
    silent: {
      [`nodeplane_pod_addresses{${FAMILY},state="free"}`]: '6x600',
      [`nodeplane_pod_addresses{${FAMILY},state="used"}`]: '94x600',
    },
  },
  NodeplaneNodeNotWritten: gauge(`nodeplane_node_unwritten_fields{${NODE}}`, 1, 0),
  NodeplaneStrangersAtTunnel: counter(`nodeplane_routes_refused_packets_total{${FAMILY}}`),
  NodeplanePeersLeftOut: gauge(`nodeplane_routes_left_out_peers{${FAMILY}}`, 1, 0),
  NodeplaneRoutesFailing: counter(`nodeplane_routes_sync_failures_total{${FAMILY}}`),
  NodeplaneWireguardFailing: counter(`nodeplane_routes_wireguard_sync_failures_total{${NODE}}`),
  NodeplaneRoutesDisturbed: counter(`nodeplane_routes_disturbances_total{${FAMILY}}`, '0+1x600', '0 1x600'),
  NodeplaneAbsent: {
    fires: { 'up{job="kube-proxy"}': '0x600' },
    silent: { [`nodeplane_build_info{${NODE},version="0.1.0"}`]: '1x600' },
  },
  NodeplaneRestarts: {
    fires: {
      [`process_start_time_seconds{${NODE}}`]: '0+60x600',
      [`nodeplane_build_info{${NODE},version="0.1.0"}`]: '1x600',
    },
    // Some other program that starts again and again.
    silent: {
      'process_start_time_seconds{job="kubelet",instance="node-1"}': '0+60x600',
      [`nodeplane_build_info{${NODE},version="0.1.0"}`]: '1x600',
    },
  },
  NodeplaneBackgroundFailures: counter(`nodeplane_background_failures_total{${NODE},work="timer"}`),
  NodeplaneConfigDiffers: {
    fires: {
      [`nodeplane_config_hash_info{${NODE},hash="0123456789ab"}`]: '1x600',
      'nodeplane_config_hash_info{job="kube-proxy",instance="node-2",hash="ba9876543210"}': '1x600',
    },
    silent: {
      [`nodeplane_config_hash_info{${NODE},hash="0123456789ab"}`]: '1x600',
      'nodeplane_config_hash_info{job="kube-proxy",instance="node-2",hash="0123456789ab"}': '1x600',
      // Another set of agents has settings of its own.
      'nodeplane_config_hash_info{job="edge",instance="node-9",hash="ba9876543210"}': '1x600',
    },
  },
  NodeplaneVersionsDiffer: {
    fires: {
      [`nodeplane_build_info{${NODE},version="0.1.0"}`]: '1x600',
      'nodeplane_build_info{job="kube-proxy",instance="node-2",version="0.2.0"}': '1x600',
    },
    silent: {
      [`nodeplane_build_info{${NODE},version="0.1.0"}`]: '1x600',
      'nodeplane_build_info{job="kube-proxy",instance="node-2",version="0.1.0"}': '1x600',
    },
  },
};

function gauge(series: string, fires: number, silent: number) {
  return { fires: { [series]: `${fires}x600` }, silent: { [series]: `${silent}x600` } };
}

function counter(series: string, fires = '0+1x600', silent = '5x600') {
  return { fires: { [series]: fires }, silent: { [series]: silent } };
}

/** Whether an alert fires at a minute; by running it, and asking for silence. */
function fires({ alert, annotations }: Rule, series: Series, minute: number): boolean {
  const input = Object.entries(series).map(([name, values]) => ({ series: name, values }));
  const expectation = { eval_time: `${minute}m`, alertname: alert };
  const tests = [{ interval: '1m', input_series: input, alert_rule_test: [expectation] }];
  const file = join(folder, 'test.yaml');
  writeFileSync(file, stringify({ rule_files: ['rules.yaml'], evaluation_interval: '1m', tests }));
  try {
    execFileSync(PROMTOOL, ['test', 'rules', file], { encoding: 'utf8', stdio: 'pipe' });
    return false;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    const said = stdout + stderr;
    if (!said.includes(`alertname: ${alert}`) || !/got:\[\s*\n?\s*0:/.test(said)) throw new Error(said);
    // What people read has its labels and values filled in.
    expect(said).not.toMatch(/<no value>|<error/);
    expect(annotations).toMatchObject({ summary: expect.stringMatching(/\.$/), description: expect.any(String) });
    return true;
  }
}

const minutesOf = (duration = '0m') => {
  const [, count, unit] = /^(\d+)([mh])$/.exec(duration) ?? [];
  return Number(count) * (unit === 'h' ? 60 : 1);
};

it('is understood by promtool without objection', () => {
  const said = execFileSync(PROMTOOL, ['check', 'rules', '--lint=all', '--lint-fatal', rulesFile], {
    encoding: 'utf8',
  });
  expect(said).toContain('SUCCESS');
});

it('every alert has its case here, and its line in docs/operations.md', () => {
  const names = alerts.map(({ alert }) => alert!);
  expect(Object.keys(CASES).sort()).toEqual([...names].sort());
  const documented = [...readFileSync(OPERATIONS, 'utf8').matchAll(/^\| `(Nodeplane\w+)` \|/gm)].map(
    ([, name]) => name,
  );
  expect(documented.sort()).toEqual([...names].sort());
});

it('asks for metrics that the agent has', () => {
  const source = execFileSync('grep', ['-rhoE', '--include=*.ts', '--exclude=*.test.ts', '[a-z0-9_]+', SOURCE], {
    encoding: 'utf8',
    maxBuffer: 1e8,
  });
  const words = new Set(source.split('\n'));
  const asked = groups.flatMap(({ rules }) =>
    rules.flatMap(({ expr }) => expr.match(/\b(nodeplane|kubeproxy)_\w+/g) ?? []),
  );
  const unknown = asked
    .map((name) => name.replace(/_bucket$/, ''))
    .filter((name) => !words.has(name) && !words.has(name.replace(/^(nodeplane|kubeproxy)_/, '')));
  expect(unknown).toEqual([]);
});

it.each(alerts.map((rule) => [rule.alert!, rule] as const))('%s', (name, rule) => {
  const { fires: firing, silent } = CASES[name]!;
  const wait = minutesOf(rule.for);
  // What grows has to be seen twice.
  expect(fires(rule, firing, wait + 10)).toBe(true);
  if (wait > 0) expect(fires(rule, firing, wait - 1)).toBe(false);
  expect(fires(rule, silent, wait + 60)).toBe(false);
});
