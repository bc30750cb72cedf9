import { compareText, nearestWord, type Steps } from '../../../core/index.ts';
import { describeValue, formatFieldPath } from '../../objects/field-reader.ts';
import { SERVICE_NAME_LABEL } from '../../objects/known-names.ts';
import { type EndpointSlice, type KubeObject, objectKey, objectName, type Service } from '../../objects/types.ts';
import type { SourceProblem } from '../../source.ts';

/** Of each kind of mistake, those that are told. */
const MOST = 20;

/** What is in force, by file and by object key; and what is known of the rest. */
export interface ObjectsInForce {
  readonly files: ReadonlyMap<string, ReadonlyMap<string, KubeObject>>;
  /** Objects of kinds that are not read, as `Endpoints demo/web`, by file; empty where EndpointSlices are not read either. */
  readonly ignored: ReadonlyMap<string, readonly string[]>;
  /** Whether an object is written somewhere, although it cannot be used. */
  isRefused(objectKey: string): boolean;
}

/** A Service with what belongs to it. */
interface Found {
  readonly file: string;
  readonly service: Service;
  readonly slices: EndpointSlice[];
}

/**
 * Mistakes that no object shows alone: endpoints of no Service, ports of other names, the same port or address twice, Endpoints
 * in place of EndpointSlices. An API server has refused them, or a controller never makes them. Goes through all objects, in steps.
 */
export function* mistakesBetween({ files, ignored, isRefused }: ObjectsInForce): Steps<readonly SourceProblem[]> {
  const services = new Map<string, Found>();
  const slices: { readonly file: string; readonly slice: EndpointSlice }[] = [];
  for (const [file, objects] of files) {
    for (const object of objects.values()) {
      yield;
      if (object.kind === 'Service') services.set(objectName(object), { file, service: object, slices: [] });
      else if (object.kind === 'EndpointSlice') slices.push({ file, slice: object });
    }
  }
  const orphans: SourceProblem[] = [];
  for (const { file, slice } of slices) {
    yield;
    const name = slice.metadata.labels?.[SERVICE_NAME_LABEL];
    if (!name) continue;
    const service = `${slice.metadata.namespace}/${name}`;
    const found = services.get(service);
    if (found) found.slices.push(slice);
    else if (orphans.length < MOST && !isRefused(`Service ${service}`))
      orphans.push(orphan(file, slice, services.keys()));
  }
  const all = [...services.values()].sort((a, b) => compareText(objectName(a.service), objectName(b.service)));
  return [...orphans, ...(yield* portNames(all)), ...(yield* collisions(all)), ...olderEndpoints(ignored, services)];
}

function orphan(file: string, slice: EndpointSlice, services: Iterable<string>): SourceProblem {
  const { namespace, labels } = slice.metadata;
  const name = labels?.[SERVICE_NAME_LABEL] ?? '';
  const meant = nearestWord(`${namespace}/${name}`, services);
  const remedy = meant === undefined ? 'correct the label, or add the Service' : `did you mean ${meant}?`;
  const path = ['metadata', 'labels', SERVICE_NAME_LABEL];
  const message = `There is no Service ${namespace}/${name}, so nothing leads to these endpoints; ${remedy}`;
  return doubt(file, slice, path, message);
}

/** Endpoints are found by the name of the port. */
function* portNames(services: readonly Found[]): Steps<readonly SourceProblem[]> {
  const found: SourceProblem[] = [];
  for (const { file, service, slices } of services) {
    yield;
    if (!slices.some(({ endpoints = [] }) => endpoints.length > 0)) continue;
    const names = new Set(slices.flatMap(({ ports = [] }) => ports.map(({ name = '' }) => name)));
    for (const [index, { name = '' }] of (service.spec.ports ?? []).entries()) {
      if (names.has(name) || found.length >= MOST) continue;
      const there = [...names].slice(0, 5).map(describeValue).join(', ') || 'none';
      const message = `No EndpointSlice of this Service has a port named ${describeValue(name)}, so there are no endpoints; the names there are ${there}: give both the same`;
      found.push(doubt(file, service, ['spec', 'ports', index, 'name'], message));
    }
  }
  return found;
}

/** Two Services cannot both have a ClusterIP or a NodePort. */
function* collisions(services: readonly Found[]): Steps<readonly SourceProblem[]> {
  const found: SourceProblem[] = [];
  const owners = new Map<string, string>();
  for (const { file, service } of services) {
    yield;
    const name = objectName(service);
    const { clusterIP = '', clusterIPs = [], ports = [] } = service.spec;
    const claims: { readonly path: readonly (string | number)[]; readonly claim: string }[] = [];
    const addresses = new Set([clusterIP, ...clusterIPs].filter((ip) => ip !== '' && ip !== 'None'));
    for (const ip of addresses) claims.push({ path: ['spec', 'clusterIP'], claim: `ClusterIP ${ip}` });
    for (const [index, { nodePort = 0, protocol = 'TCP' }] of ports.entries()) {
      if (nodePort === 0) continue;
      claims.push({ path: ['spec', 'ports', index, 'nodePort'], claim: `NodePort ${nodePort}/${protocol}` });
    }
    for (const { path, claim } of claims) {
      const owner = owners.get(claim);
      if (owner === undefined) owners.set(claim, name);
      else if (found.length < MOST) {
        const message = `Service ${owner} has ${claim} too, and only one of them can get it; give each its own`;
        found.push(doubt(file, service, path, message));
      }
    }
  }
  return found;
}

function olderEndpoints(
  ignored: ObjectsInForce['ignored'],
  services: ReadonlyMap<string, Found>,
): readonly SourceProblem[] {
  const found: SourceProblem[] = [];
  for (const [file, objects] of ignored) {
    for (const object of objects) {
      const [kind, written = ''] = object.split(' ');
      const name = written.includes('/') ? written : `default/${written}`;
      if (kind !== 'Endpoints' || services.get(name)?.slices.length !== 0 || found.length >= MOST) continue;
      const message = `Endpoints are not read from files, and Service ${name} has no EndpointSlice; write one (discovery.k8s.io/v1)`;
      found.push({ where: file, object, field: 'kind', message, inForce: true });
    }
  }
  return found;
}

function doubt(file: string, object: KubeObject, path: readonly (string | number)[], message: string): SourceProblem {
  return { where: file, object: objectKey(object), field: formatFieldPath(path), message, inForce: true };
}
