export { mistakesBetween, type ObjectsInForce } from './between-objects.ts';
export { doubtfulValues } from './doubtful-values.ts';
export { KNOWN_FIELDS } from './known-fields.ts';
export { unknownFields, withoutConsequences } from './unknown-fields.ts';
export { misspelt, wrongKind } from './wrong-kinds.ts';
