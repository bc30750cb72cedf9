import type { ApiObject } from './api-object.ts';

export type Selector = (object: ApiObject) => boolean;

/** The forms `key`, `!key`, `key=value`, `key==value` and `key!=value`, joined by commas. */
export function labelSelector(text: string): Selector {
  return allOf(text, (term) => {
    const { key, operator, value } = parseTerm(term);
    return ({ metadata: { labels = {} } }) => {
      switch (operator) {
        case '':
          return Object.hasOwn(labels, key);
        case '!':
          return !Object.hasOwn(labels, key);
        case '=':
          return labels[key] === value;
        case '!=':
          return labels[key] !== value;
      }
    };
  });
}

/** The forms `path=value` and `path!=value`, joined by commas; a missing field is an empty one. */
export function fieldSelector(text: string): Selector {
  return allOf(text, (term) => {
    const { key, operator, value } = parseTerm(term);
    if (operator !== '=' && operator !== '!=') throw new Error(`Not a field selector: "${term}"`);
    return (object) => (String(fieldOf(object, key) ?? '') === value) === (operator === '=');
  });
}

function allOf(text: string, parse: (term: string) => Selector): Selector {
  const selectors = text.split(',').filter(Boolean).map(parse);
  return (object) => selectors.every((selector) => selector(object));
}

function parseTerm(term: string): { key: string; operator: '' | '!' | '=' | '!='; value: string } {
  const match = /^(!?)([^=!]+)(?:(!=|==?)(.*))?$/.exec(term);
  if (!match) throw new Error(`Not a selector: "${term}"`);
  const [, not, key = '', comparison, value = ''] = match;
  if (comparison === undefined) return { key, operator: not === '!' ? '!' : '', value };
  return { key, operator: comparison === '!=' ? '!=' : '=', value };
}

function fieldOf(object: unknown, path: string): unknown {
  let value = object;
  for (const key of path.split('.')) value = (value as Record<string, unknown> | undefined)?.[key];
  return value;
}
