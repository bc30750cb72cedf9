import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { misfits } from './api-schema.ts';
import { DEPLOY, daemonSetOf, type Rendered, render, renderWith } from './render.ts';

// Kustomizations of one's own, as README.md and docs/ show them: each is rendered, and makes what is said of it.

const DIGEST = `sha256:${'1'.repeat(64)}`;

/** The kustomizations of a page, in its order. */
function kustomizationsOf(page: string): Parameters<typeof renderWith>[0][] {
  const text = readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8');
  const blocks = [...text.matchAll(/```yaml\n([\s\S]*?)\n *```|<<'EOF'\n(resources:[\s\S]*?)EOF\n/g)];
  return blocks
    .map(([, fenced, heredoc]) => parse((fenced ?? heredoc)!.replaceAll('../deploy/', '').replace('sha256:…', DIGEST)))
    .filter((parsed) => parsed?.resources !== undefined);
}

const imagesOf = (objects: readonly Rendered[]) => {
  const { containers, initContainers = [] } = daemonSetOf(objects).spec!.template.spec!;
  return [...new Set([...containers, ...initContainers].map(({ image }) => image))];
};

const PUSHED = `registry.my-company.example/nodeplane@${DIGEST}`;

it('README.md swaps in the image that it built', () => {
  const [swap, ...others] = kustomizationsOf('README.md');
  expect(others).toEqual([]);
  expect(imagesOf(renderWith(swap!))).toEqual(['registry.my-company.example/nodeplane:0.1.0']);
});

describe('docs/install.md', () => {
  const [pushed, imported, settings, probed, pools, otherPool] = kustomizationsOf('docs/install.md');

  it('names an image in a registry by its digest, and an imported one by its tag', () => {
    expect(imagesOf(renderWith(pushed!))).toEqual([PUSHED]);
    expect(imagesOf(renderWith(imported!))).toEqual(['registry.example/nodeplane/nodeplane:0.1.0']);
  });

  it.each(['swap/image', 'proxy/iptables', 'full/ipvs', 'preflight'])(
    'in the same way for %s, and changes nothing besides',
    (name) => {
      const resources = [`overlays/${name}`];
      const objects = renderWith({ ...pushed, resources });
      expect(imagesOf(objects)).toEqual([PUSHED]);
      expect(imagesOf(renderWith({ ...imported, resources }))).toEqual(['registry.example/nodeplane/nodeplane:0.1.0']);
      const [before] = imagesOf(render(`overlays/${name}`));
      expect(JSON.parse(JSON.stringify(objects).replaceAll(PUSHED, before!))).toEqual(render(`overlays/${name}`));
      const partial = name.startsWith('swap');
      expect(objects.flatMap((object) => misfits(object, { partial }))).toEqual([]);
    },
  );

  it('says settings, of which a change is a rollout', () => {
    const config = readFileSync(join(DEPLOY, 'components/nftables/config.conf'), 'utf8').replace('10.244', '10.99');
    const kubeconfig = readFileSync(join(DEPLOY, 'base/kubeconfig.conf'), 'utf8');
    const objects = renderWith({ ...settings, files: { 'config.conf': config, 'kubeconfig.conf': kubeconfig } });
    expect(imagesOf(objects)).toEqual([PUSHED]);
    const configMap = objects.find(({ kind }) => kind === 'ConfigMap')!;
    expect(parse(configMap.data['config.conf'])).toMatchObject({ mode: 'nftables', clusterCIDR: '10.99.0.0/16' });
    const { volumes } = daemonSetOf(objects).spec!.template.spec!;
    expect(volumes).toContainEqual({ name: 'kube-proxy', configMap: { name: configMap.metadata.name } });
    // The name follows the content.
    const before = render('overlays/proxy/nftables').find(({ kind }) => kind === 'ConfigMap')!;
    expect(configMap.metadata.name).not.toBe(before.metadata.name);
  });

  it('has the probes ask where healthzBindAddress says', () => {
    const [agent] = daemonSetOf(renderWith(probed!)).spec!.template.spec!.containers;
    expect(agent!.livenessProbe!.httpGet).toEqual({ host: '127.0.0.1', port: 10257, path: '/livez' });
    expect(agent!.readinessProbe!.httpGet).toEqual({ host: '127.0.0.1', port: 10257, path: '/readyz' });
  });

  it('adds pools', () => {
    const withPools = { resources: ['overlays/full/nftables'], components: ['components/pools'] };
    expect(renderWith(pools!)).toEqual(renderWith(withPools));
  });

  it('names another pool in place of the component’s', () => {
    const flagsOf = (objects: readonly Rendered[]) =>
      daemonSetOf(objects).spec!.template.spec!.containers[0]!.command!.filter((word) => /pool/.test(word));
    expect(flagsOf(renderWith(pools!))).toEqual(['--pod-cidrs-from=pool', '--pool-cidrs=10.244.0.0/16']);
    expect(flagsOf(renderWith(otherPool!))).toEqual(['--pod-cidrs-from=pool', '--pool-cidrs=10.99.0.0/16']);
    // Without the component there is no such word to replace.
    expect(() => renderWith({ ...otherPool, components: [] })).toThrow();
  });
});

describe('docs/preflight.md', () => {
  const [plain, given, named] = kustomizationsOf('docs/preflight.md');
  const sourcesOf = (objects: readonly Rendered[]) =>
    daemonSetOf(objects).spec!.template.spec!.volumes!.flatMap(({ projected }) => projected?.sources ?? []);

  it('names the image', () => {
    expect(imagesOf(renderWith(plain!))).toEqual(['registry.example/nodeplane/nodeplane:0.1.0']);
  });

  it('gives it the files and flags that the agent is going to have', () => {
    const objects = renderWith({
      ...given,
      files: { 'config.conf': 'mode: nftables', 'kubeconfig.conf': 'kind: Config' },
    });
    const configMap = objects.find(({ kind }) => kind === 'ConfigMap')!;
    expect(configMap.data).toEqual({ 'config.conf': 'mode: nftables', 'kubeconfig.conf': 'kind: Config' });
    expect(sourcesOf(objects)[0]).toEqual({ configMap: { name: configMap.metadata.name } });
    const [preflight] = daemonSetOf(objects).spec!.template.spec!.initContainers!;
    const [before] = daemonSetOf(render('overlays/preflight')).spec!.template.spec!.initContainers!;
    expect(preflight!.command).toEqual([...before!.command!, '--cni', '--routes=auto']);
  });

  it('names another ConfigMap', () => {
    const objects = renderWith(named!);
    expect(objects.flatMap((object) => misfits(object))).toEqual([]);
    expect(sourcesOf(objects)[1]).toEqual({ configMap: { name: 'kube-proxy-7bk2m8g5t4', optional: true } });
  });
});

it('docs/migration.md names the image of the way back', () => {
  const [wayBack, ...others] = kustomizationsOf('docs/migration.md');
  expect(others).toEqual([]);
  const objects = renderWith(wayBack!);
  expect(imagesOf(objects)).toEqual(['registry.example/nodeplane/nodeplane:0.1.0']);
  expect(daemonSetOf(objects).metadata!.name).toBe('nodeplane-way-back');
});
