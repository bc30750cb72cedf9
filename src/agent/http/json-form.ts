// What a page of another process must look like before anything is made of it.

export type Check = (value: unknown) => boolean;

/**
 * Reads JSON of a form.
 *
 * @returns undefined when it is no JSON or has another form
 */
export function parseForm<T>(text: string, isForm: Check): T | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  return isForm(value) ? (value as T) : undefined;
}

export const isText: Check = (value) => typeof value === 'string';
export const isNumber: Check = (value) => Number.isFinite(value);
export const isBoolean: Check = (value) => typeof value === 'boolean';

export const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);

export const orNull =
  (check: Check): Check =>
  (value) =>
    value === null || check(value);

export const isOneOf =
  (...words: readonly string[]): Check =>
  (value) =>
    words.some((word) => word === value);

/** Further fields may be there. */
export const objectOf =
  (checks: Readonly<Record<string, Check>>): Check =>
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    Object.entries(checks).every(([key, check]) => check((value as Readonly<Record<string, unknown>>)[key]));
