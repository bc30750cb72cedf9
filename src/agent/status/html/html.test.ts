import { expect, it } from 'vitest';
import { html } from './html.ts';

it('makes text of all that is put in, in elements and attributes', () => {
  const name = `</style><script>alert("1" + '2')</script>&amp;`;
  const text = html`<b title="${name}">${name}</b>`.toString();
  const safe = '&lt;/style&gt;&lt;script&gt;alert(&quot;1&quot; + &#39;2&#39;)&lt;/script&gt;&amp;amp;';
  expect(text).toBe(`<b title="${safe}">${safe}</b>`);
});

it('shows characters that steer a terminal or turn text by their numbers', () => {
  expect(html`${'a\u001b[2J\n\u202eb'}`.toString()).toBe('a\\u001b[2J\\u000a\\u202eb');
});

it('keeps HTML, puts lists in one by one, and nothing for what is missing', () => {
  expect(html`<ul>${['<', 2].map((one) => html`<li>${one}</li>`)}${false}${null}${undefined}</ul>`.toString()).toBe(
    '<ul><li>&lt;</li><li>2</li></ul>',
  );
});
