import type { NftRef } from './object/model.ts';

/** How an object is called in errors: `chain "services" of table ip "nodeplane"`. */
export function describeObject(object: NftRef): string {
  if (object.kind === 'table') return `table ${object.family} "${object.name}"`;
  const table = `of table ${object.family} "${object.table}"`;
  switch (object.kind) {
    case 'rule':
      return `rule ${object.handle === undefined ? '' : `${object.handle} `}of chain "${object.chain}" ${table}`;
    case 'elements':
      return `${object.elements.length} elements of set "${object.set}" ${table}`;
    default:
      return `${object.kind} "${object.name}" ${table}`;
  }
}
