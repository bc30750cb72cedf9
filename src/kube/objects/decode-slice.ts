import { isMapping } from '../../core/index.ts';
import { flag, listOf, oneOf, type Reader, record, required, text } from './field-reader.ts';
import type { EndpointSlice, ObjectMeta, SliceEndpoint, SlicePort } from './types.ts';
import { addressOf, portName, portNumber, protocol } from './value-readers.ts';

type AddressType = EndpointSlice['addressType'];

const named = record<{ readonly name: string }>({ name: required(text) });

const ports = listOf(record<SlicePort>({ name: portName, protocol, port: portNumber }));

/** Of a reference to a pod, which is one of the slice's own namespace. Nothing depends on it: what is none is passed over. */
const podName: Reader<string> = (value) =>
  isMapping(value) && value.kind === 'Pod' && typeof value.name === 'string' ? value.name : undefined;

function endpoints(address: Reader<string>): Reader<readonly SliceEndpoint[]> {
  return listOf(
    record<SliceEndpoint>({
      addresses: listOf(address),
      conditions: record<NonNullable<SliceEndpoint['conditions']>>({ ready: flag, serving: flag, terminating: flag }),
      nodeName: text,
      targetRef: podName,
      hints: record<NonNullable<SliceEndpoint['hints']>>({ forZones: listOf(named), forNodes: listOf(named) }),
    }),
  );
}

/** The reader of an EndpointSlice: its addresses must be of its own address type (host names are any text). */
export function sliceReader(metadata: Reader<ObjectMeta>): Reader<Omit<EndpointSlice, 'kind'>> {
  const readerFor = (address: Reader<string>) =>
    record<Omit<EndpointSlice, 'kind'>>({
      metadata: required(metadata),
      addressType: required(oneOf('IPv4', 'IPv6', 'FQDN')),
      endpoints: endpoints(address),
      ports,
    });
  const readers = new Map<unknown, Reader<Omit<EndpointSlice, 'kind'>>>([
    ['IPv4', readerFor(addressOf('IPv4'))],
    ['IPv6', readerFor(addressOf('IPv6'))],
  ] satisfies [AddressType, unknown][]);
  const anyText = readerFor(text);
  return (value, report) => {
    const reader = isMapping(value) ? readers.get(value.addressType) : undefined;
    return (reader ?? anyText)(value, report);
  };
}
