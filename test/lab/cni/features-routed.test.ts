import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { removeAll } from '../namespace.ts';
import { createFeatureWorld, elementsOf, type FeaturePod, type FeatureWorld, mapping } from './feature-world.ts';

const ROUTED = { mode: 'routed' };
const FAMILIES = ['IPv4', 'IPv6'] as const;

let world: FeatureWorld;
let web: FeaturePod;
let other: FeaturePod;

beforeAll(async () => {
  world = createFeatureWorld();
  web = await world.addPod('web', { ...ROUTED, ipMasq: true, ...mapping({ hostPort: 8080, containerPort: 80 }) });
  other = await world.addPod('other', ROUTED);
  await web.serve({ port: 80 });
  await other.serve({ port: 80 });
  await world.outside.serve({ port: 80 });
});

afterAll(removeAll);

describe('a routed pod', () => {
  it.each(FAMILIES)('is masqueraded outside, and not towards other pods, %s', async (family) => {
    const outside = await web.connect({ ip: world.outside.ip(family), port: 80 });
    expect(outside).toMatchObject({ source: world.nodeHost.ip(family) });
    expect(await web.connect({ ip: other.ip(family), port: 80 })).toMatchObject({ source: web.ip(family) });
  });

  it.each(FAMILIES)('is reached by a port of the node from everywhere, %s', async (family) => {
    const target = { ip: world.nodeHost.ip(family), port: 8080 };
    expect(await world.outside.connect(target)).toMatchObject({ by: 'web', source: world.outside.ip(family) });
    // Its answer comes back through the node anyway, so it may know who asks.
    expect(await other.connect(target)).toMatchObject({ by: 'web', source: other.ip(family) });
    expect(await web.connect(target)).toMatchObject({ kind: 'answered', by: 'web' });
    expect(await world.nodeHost.connect(target)).toMatchObject({ by: 'web' });
  });

  it('is reached over 127.0.0.1', async () => {
    expect(await world.nodeHost.connect({ ip: '127.0.0.1', port: 8080 })).toMatchObject({ by: 'web' });
  });

  it('leaves nothing behind', async () => {
    await world.del(web, ROUTED);
    expect(elementsOf(world.table(), web.namespace.name)).toEqual([]);
  });
});
