import { expect, it } from 'vitest';
import { parseCidr, parseIp } from '../../core/index.ts';
import { RequestForms } from './request-forms.ts';
import type { RouteObject } from './route-object.ts';
import { requestOf } from './route-request.ts';

const mac = (last: number) => Uint8Array.of(2, 0, 0, 0, 0, last);

/** Of each kind two that differ in what a form puts in, and others that have forms of their own. */
const OBJECTS: readonly RouteObject[] = [2, 3].flatMap((n): RouteObject[] => {
  const gateway = parseIp(`fd00::${n}`);
  return [
    ...[7, 300].flatMap((outInterface): RouteObject[] => [
      { kind: 'nexthop', id: 0x4e50_0000 + n, outInterface, gateway: parseIp(`10.0.0.${n}`), onlink: false },
      { kind: 'nexthop', id: 0x4e50_0000 + n, outInterface, gateway: parseIp(`10.0.0.${n}`), onlink: true },
      { kind: 'neighbour', index: outInterface, ip: gateway, mac: mac(n) },
      { kind: 'fdb', index: outInterface, mac: mac(n), remote: gateway },
      ...[64, 80].map((prefixLength): RouteObject => {
        const destination = parseCidr(`fd0${n}::/${prefixLength}`);
        return { kind: 'route', destination, way: 'gateway', outInterface, gateway, onlink: outInterface === 7 };
      }),
    ]),
    { kind: 'route', destination: parseCidr(`10.${n}.0.0/24`), way: 'nexthop', id: n },
    { kind: 'route', destination: parseCidr(`10.${n}.0.0/16`), way: 'unreachable' },
    { kind: 'route', destination: parseCidr(`10.${n}.0.0/20`), way: 'device', outInterface: 7 },
  ];
});

it('requests of a form are those that are encoded one by one', () => {
  const forms = new RequestForms();
  const operations = OBJECTS.flatMap((object) =>
    (['add', 'replace', 'delete'] as const).map((action) => ({ action, object })),
  );
  for (const operation of operations) {
    const { type, flags, payload, operation: name, object } = forms.requestOf(operation);
    const expected = requestOf(operation);
    expect({ type, flags, payload: [...payload], name, object }).toEqual({
      type: expected.type,
      flags: expected.flags,
      payload: [...expected.payload],
      name: expected.operation,
      object: expected.object,
    });
  }
});
