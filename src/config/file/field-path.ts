import { ALL_FIELDS, type Configuration, type Field, type FieldPath, type Section, type ValueAt } from './schema.ts';

/** The declaration of the field at a path. */
export function fieldAt<P extends FieldPath>(path: P): Field<ValueAt<P>> {
  const found = path.split('.').reduce<Section | Field<unknown>>((at, key) => (at as Section)[key]!, ALL_FIELDS);
  return found as Field<ValueAt<P>>;
}

/** The value at a path. */
export function valueAt<P extends FieldPath>(configuration: Configuration, path: P): ValueAt<P> {
  const found = path.split('.').reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], configuration);
  return found as ValueAt<P>;
}

/** A copy of the configuration with another value at one path. */
export function withValue<P extends FieldPath>(
  configuration: Configuration,
  path: P,
  value: ValueAt<P>,
): Configuration {
  return replaced(configuration, path.split('.'), value) as Configuration;
}

function replaced(at: object, [key, ...rest]: readonly string[], value: unknown): object {
  const below = rest.length === 0 ? value : replaced((at as Record<string, object>)[key!]!, rest, value);
  return { ...at, [key!]: below };
}
