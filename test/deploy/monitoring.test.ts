import { readFileSync, statSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

// The dashboard by the conventions of Grafana's dashboard-linter and of kubernetes-mixin; its queries are run by
// test/lab/prometheus/dashboards.test.ts.

interface Target {
  readonly expr: string;
  readonly legendFormat: string;
  readonly datasource: { readonly uid: string };
}

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly interval?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly fieldConfig: {
    readonly defaults: { readonly unit?: string; readonly custom?: { fillOpacity: number; showPoints: string } };
  };
  readonly options: { readonly legend?: object };
  readonly targets: readonly Target[];
}

/** How Grafana names the data source that is chosen above the panels. */
const CHOSEN = `\${datasource}`;

const folder = new URL('../../deploy/monitoring/', import.meta.url);
const file = new URL('dashboard.json', folder);
const dashboard = JSON.parse(readFileSync(file, 'utf8'));
const all: readonly Panel[] = dashboard.panels;
const panels = all.filter(({ type }) => type !== 'row').map((panel) => [panel.title, panel] as const);

describe('deploy/monitoring/dashboard.json', () => {
  it('is fixed: links to it stay, and nobody edits what the next rollout overwrites', () => {
    expect(dashboard).toMatchObject({
      uid: 'nodeplane',
      title: expect.stringMatching(/./),
      tags: expect.arrayContaining(['nodeplane']),
      editable: false,
      time: { from: 'now-1h', to: 'now' },
      refresh: '10s',
      timezone: 'UTC',
    });
    expect(dashboard.schemaVersion).toBeGreaterThanOrEqual(36);
  });

  it('lets choose data source, cluster, job and instance', () => {
    const variables = Object.fromEntries(dashboard.templating.list.map((one: { name: string }) => [one.name, one]));
    expect(Object.keys(variables)).toEqual(['datasource', 'cluster', 'job', 'instance']);
    expect(variables.datasource).toMatchObject({ type: 'datasource', query: 'prometheus', label: 'Data source' });
    for (const name of ['cluster', 'job', 'instance']) {
      expect(variables[name]).toMatchObject({ type: 'query', datasource: { uid: CHOSEN }, refresh: 2 });
    }
    for (const name of ['job', 'instance']) {
      expect(variables[name]).toMatchObject({ includeAll: true, multi: true, allValue: '.+' });
    }
  });

  it('has panels with ids of their own, none over another, on 24 columns', () => {
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
    for (const { gridPos, title } of all) expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
    const overlaps = (one: Panel['gridPos'], other: Panel['gridPos']) =>
      one.x < other.x + other.w && other.x < one.x + one.w && one.y < other.y + other.h && other.y < one.y + one.h;
    const pairs = all.flatMap((one, index) => all.slice(index + 1).map((other) => [one, other] as const));
    expect(pairs.filter(([one, other]) => overlaps(one.gridPos, other.gridPos)).map(([{ title }]) => title)).toEqual(
      [],
    );
  });

  it.each(panels)('%s: says what it shows, in which unit', (_, panel) => {
    expect(panel.title).not.toBe('');
    expect(panel.description).toMatch(/\.$/);
    expect(panel.fieldConfig.defaults.unit).toMatch(/^(short|s|ops|reqps|bytes|Bps|percentunit)$/);
    expect(panel.interval).toBe('1m');
    if (panel.type === 'stat') return;
    expect(panel.type).toBe('timeseries');
    expect(panel.fieldConfig.defaults.custom).toMatchObject({ fillOpacity: 10, showPoints: 'never' });
    expect(panel.options.legend).toMatchObject({ displayMode: 'table', placement: 'right', calcs: ['lastNotNull'] });
  });

  it.each(panels)('%s: asks the chosen data source about the chosen agents', (_, { targets }) => {
    expect(targets.length).toBeGreaterThan(0);
    for (const { expr, datasource, legendFormat } of targets) {
      expect(datasource.uid).toBe(CHOSEN);
      expect(legendFormat).not.toBe('');
      const selectors = expr.match(/\b[a-z][a-z0-9_]*\{[^}]*\}/g) ?? [];
      expect(selectors.length).toBeGreaterThan(0);
      for (const selector of selectors) {
        expect(selector).toContain('{cluster="$cluster", job=~"$job", instance=~"$instance"');
      }
      // No metric without its selector.
      const names = expr.match(/\b(?:nodeplane|kubeproxy|process|nodejs|rest_client)_\w+/g) ?? [];
      expect(selectors).toHaveLength(names.length + (expr.match(/\bup\{/g)?.length ?? 0));
      for (const [, range] of expr.matchAll(/\[([^\]]*)\]/g)) expect(range).toBe('$__rate_interval');
      // Counters grow for ever: what they say is how fast.
      if (/_(total|bucket|count)\{/.test(expr) && !/no_local_endpoints_total/.test(expr))
        expect(expr).toContain('rate(');
    }
  });
});

describe('deploy/monitoring/kustomization.yaml', () => {
  const { configMapGenerator } = parse(readFileSync(new URL('kustomization.yaml', folder), 'utf8'));

  it('makes the ConfigMap that Grafana’s sidecar looks for, under a name that stays', () => {
    expect(configMapGenerator).toEqual([
      {
        name: 'nodeplane-dashboard',
        files: ['dashboard.json'],
        options: { disableNameSuffixHash: true, labels: { grafana_dashboard: '1' } },
      },
    ]);
  });

  it('fits into an annotation, as kubectl apply keeps what it applied', () => {
    expect(statSync(file).size).toBeLessThan(200_000);
  });
});
