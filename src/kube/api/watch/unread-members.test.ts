import fc from 'fast-check';
import { expect, it } from 'vitest';
import { HEADLESS_LABEL, SERVICE_NAME_LABEL } from '../../objects/known-names.ts';
import { withoutUnread } from './unread-members.ts';

const LONG = 'x'.repeat(70_000);
const MANY = Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`k${n}`, 'v'.repeat(20)]));

it('keeps of thousands of labels those that are read, wherever they stand', () => {
  const labels = { [SERVICE_NAME_LABEL]: 'a "web", {of} \\', ...MANY, [HEADLESS_LABEL]: '' };
  const managedFields = [{ fieldsV1: { 'f:labels': { ...MANY, [SERVICE_NAME_LABEL]: {} } } }];
  const spec = { selector: MANY, ports: [{ name: 'http', port: 80 }] };
  const text = withoutUnread(JSON.stringify({ object: { metadata: { name: 'x', labels, managedFields }, spec } }));
  expect(JSON.parse(text)).toEqual({
    object: {
      metadata: {
        name: 'x',
        labels: { [SERVICE_NAME_LABEL]: labels[SERVICE_NAME_LABEL], [HEADLESS_LABEL]: '' },
        managedFields: [{ fieldsV1: { 'f:labels': { [SERVICE_NAME_LABEL]: {} } } }],
      },
      spec: { selector: {}, ports: [{ name: 'http', port: 80 }] },
    },
  });
});

it('drops a mapping of many with all that was cut within it', () => {
  const text = JSON.stringify({ a: { ...MANY, k7: { deep: MANY } }, b: MANY, c: [1, { d: 2 }] });
  expect(JSON.parse(withoutUnread(text))).toEqual({ a: {}, b: {}, c: [1, { d: 2 }] });
});

it('changes nothing else, whatever the texts hold', () => {
  fc.assert(
    fc.property(fc.json(), (json) => {
      const text = `{"long":"${LONG}","rest":${json}}`;
      expect(withoutUnread(text)).toBe(text);
    }),
  );
});

it.each(['{"a":"', '}', '{"a":1}}', '{"a"', ':', ',', '{"a":"\\"'])(
  'leaves it to the parser to refuse %s',
  (rubbish) => {
    const text = `"${LONG}"${rubbish}`;
    expect(withoutUnread(text)).toBe(text);
  },
);
