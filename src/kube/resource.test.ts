import { describe, expect, it } from 'vitest';
import { mergeResources, pathOf, type Resource } from './resource.ts';
import { ENDPOINT_SLICES, NODES, nodeNamed, SERVICE_CIDRS, SERVICES } from './resources.ts';

it('is found at the path of its group', () => {
  expect(pathOf(SERVICES.kind.apiVersion, SERVICES.name)).toBe('/api/v1/services');
  expect(pathOf(ENDPOINT_SLICES.kind.apiVersion, ENDPOINT_SLICES.name)).toBe(
    '/apis/discovery.k8s.io/v1/endpointslices',
  );
});

describe('resources of several consumers', () => {
  it('are read once each, in the order in which they are first wanted', () => {
    const merged = mergeResources([nodeNamed('a'), SERVICES, nodeNamed('a'), SERVICE_CIDRS]);
    expect(merged.map(({ name }) => name)).toEqual(['nodes', 'services', 'servicecidrs']);
    expect(merged[0]).toMatchObject({ query: { fieldSelector: 'metadata.name=a' } });
  });

  it.each([
    ['all and some', [NODES, nodeNamed('a')]],
    ['some and all', [nodeNamed('a'), NODES]],
    ['different ones', [nodeNamed('a'), nodeNamed('b')]],
  ])('are read without selectors where these differ: %s', (_, wanted) => {
    expect(mergeResources(wanted)).toMatchObject([{ name: 'nodes', query: {} }]);
  });

  it('are waited for as the most patient consumer waits, and may be missing only if all can do without', () => {
    const awaited = { object: 'Node a', isReady: () => true, absence: 'It is missing' };
    const patient: Resource = { ...NODES, essential: true };
    const demanding: Resource = { ...NODES, optional: true, awaited };
    const merged = { essential: true, optional: false, awaited };
    expect(mergeResources([patient, demanding])).toMatchObject([merged]);
    expect(mergeResources([demanding, patient])).toMatchObject([merged]);
  });
});
