import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Agent, removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { builtProgram } from '../programs.ts';
import { type Browser, type Look, startBrowser } from './browser.ts';
import { createStatusNode, HOSTILE, type StatusNode } from './node.ts';

const LONG_MS = patient(300_000);
/** `npm run docs:pictures` has the pictures of docs/ taken. */
const PICTURES = process.env.NODEPLANE_PICTURES;
const PAGE_URL = 'http://127.0.0.1:10249/status';

let lab: StatusNode;
let agent: Agent;

beforeAll(async () => {
  lab = await createStatusNode();
  if (PICTURES) rmSync(join(lab.manifests, 'hostile.json'));
  agent = await lab.start('--proxy-mode', 'nftables', '--routes', 'host-gw', '--status-bind-address', '0.0.0.0:10300');
  for (let edit = 0; PICTURES && edit < 24; edit++) {
    lab.edit(edit);
    await delay(1100);
  }
}, LONG_MS);
afterAll(async () => {
  await agent?.stop();
  removeAll();
});

function nodeplane(...args: string[]) {
  const command = ['netns', 'exec', lab.node.namespace.name, builtProgram('nodeplane'), ...args];
  const { status, stdout, stderr } = spawnSync('ip', command, { encoding: 'utf8' });
  return { status, stdout, stderr };
}

describe('nodeplane status', () => {
  it(
    'answers the eight questions in their order, and tells the problems last, each with a command',
    () => {
      const { status, stdout } = nodeplane('status');
      const lines = stdout.split('\n');
      expect(lines[0]).toMatch(/^node-1: nodeplane \S+, nftables, /);
      const titles = [
        'Agent',
        'Last write',
        'API server',
        'Services here',
        'Rules in the kernel',
        'Connection tracking',
        'Other nodes',
        'Lately changed',
      ];
      expect(lines.slice(2, 10).map((line) => /^[✓✗–] +([A-Z][\w ]*?) {2,}/.exec(line)?.[1])).toEqual(titles);
      expect(lines[5]).toMatch(
        /^✗ +Services here +2 of 5 .* 1 without any endpoint, 1 with none on this node .* 1 not, or not all/,
      );
      expect(stdout).toMatch(/\n {6}less \+1 '?\/\S+hostile\.json'?\n/);
      expect(stdout).toMatch(
        /\n\nPROBLEMS: 2\n[\s\S]*\n {2}✗ shop\/mail, IPv4: .*169\.254\.169\.254.*\n {6}nodeplane services shop\/mail\n$/,
      );
      expect(status).toBe(2);
      expect(stdout).toContain('alert(1)</script>\\u001b[2J');
      expect(stdout).not.toContain('\u001b');
      const json = JSON.parse(nodeplane('status', '-o', 'json').stdout);
      expect(json).toMatchObject({ schema: 'nodeplane/status/v1', node: 'node-1', mode: 'nftables' });
    },
    LONG_MS,
  );

  it(
    'says what to do when no agent answers',
    () => {
      const { status, stderr, stdout } = nodeplane('status', '--address', '127.0.0.1:1');
      expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
      expect(stderr).toMatch(
        /^nodeplane: Cannot ask the agent at 127\.0\.0\.1:1\. Does it run on this node.*ECONNREFUSED.*\(ERR_STATUS_AGENT\)\n$/,
      );
    },
    LONG_MS,
  );
});

it('shows what would steer a terminal, and does not do it', () => {
  for (const args of [
    ['explain', HOSTILE],
    ['explain', `svc/shop/${HOSTILE}`],
    ['status', '--address', HOSTILE],
    [HOSTILE],
  ]) {
    const { stdout, stderr } = nodeplane(...args);
    expect(stdout + stderr).toContain('\\u001b[2J');
    expect(stdout + stderr).not.toContain('\u001b');
  }
});

describe('output that cannot be written', () => {
  const shell = (script: string) =>
    spawnSync('sh', ['-c', script, lab.node.namespace.name, builtProgram('nodeplane')], { encoding: 'utf8' });

  it('is no news where nobody reads it any more, and changes no exit status', () => {
    const { stderr } = shell('{ sleep 0.5; ip netns exec "$0" "$1" status; echo "status $?" >&2; } | true');
    expect(stderr).toBe('status 2\n');
  });

  it.each(['status', 'diff --help', 'trace any 10.96.0.1:80 --live 100ms'])(
    'is told in words where the disk is full, and is no answer of the command: %s',
    (command) => {
      const { status, stderr } = shell(`ip netns exec "$0" "$1" ${command} >/dev/full`);
      expect(stderr).toMatch(/^nodeplane: Cannot write the output: ENOSPC: .*\n$/);
      expect(status).toBe(74);
    },
  );
});

describe('nodeplane services', () => {
  it.each([
    ['--page', 'NaN'],
    ['--page', '-1'],
    ['--page', '1e400'],
    ['--page', ''],
    ['shop/web', '--top'],
    // Taken for a name it would be looked for in the DNS, for as long as the resolver takes.
    ['--address', ''],
    ['--address', 'node-1:10249'],
  ])('refuses %s %s', (...args) => {
    const { status, stderr } = nodeplane('services', ...args);
    expect(stderr).toMatch(/^error: .*--(page|top|address)/);
    expect(status).toBe(64);
  });

  it(
    'shows of one Service why each endpoint is used or not, and the connections to it',
    async () => {
      const hold = () => lab.pods[0]!.hold({ ip: '10.96.0.10', port: 80 });
      let held = await hold();
      // One of the three endpoints in use is a pod that nobody made.
      while (held.outcome.kind !== 'answered') held = await hold();
      // As `nodeplane explain` and kubectl write it.
      const { status, stdout } = nodeplane('services', 'svc/shop/web');
      await held.close();
      expect(stdout).toMatch(/^✓ shop\/web\n/);
      expect(stdout).toMatch(
        /http, TCP, IPv4: 10\.96\.0\.10:80, NodePort 30080\n {2}4 endpoints, 3 used; [1-9]\d* connections? now/,
      );
      expect(stdout).toMatch(/^ {2}✓ +10\.244\.1\.\d+:8080 +on this node +\d connections? +ready$/m);
      expect(stdout).toMatch(/^ {2}– +10\.244\.2\.12:8080 .* not ready$/m);
      expect(status).toBe(0);
    },
    LONG_MS,
  );

  it(
    'lists those to look at first, and finds by address',
    () => {
      const { stdout } = nodeplane('services');
      const names = stdout.split('\n').flatMap((line) => /^[✓✗–] +(shop\/\S+)/.exec(line)?.[1] ?? []);
      expect(names.at(0)).toBe('shop/mail');
      expect(names.slice(-2)).toEqual(['shop/search', 'shop/web']);
      expect(nodeplane('services', '10.96.0.20').stdout).toMatch(/^– shop\/empty: refused: no endpoint anywhere/);
      expect(nodeplane('services', 'nobody')).toMatchObject({
        status: 1,
        stderr: expect.stringContaining('none of 5 fits. Headless'),
      });
      for (const wrong of ['shop/wbe', 'svc/shop/wbe', 'wbe'])
        expect(nodeplane('services', wrong).stderr).toContain('did you mean shop/web?');
    },
    LONG_MS,
  );
});

describe('the page', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startBrowser(lab.node.namespace);
  }, LONG_MS);
  afterAll(() => browser?.close());

  const LOOKS: readonly Look[] = [1200, 360].flatMap((width) =>
    (['light', 'dark'] as const).map((scheme) => ({ width, height: 900, scheme })),
  );

  it.each(LOOKS)(
    'fits $width pixels, can be read in $scheme, and complains about nothing',
    async (look) => {
      await browser.open(PAGE_URL, look);
      const { wide, rows, scripts, text, ground } = await browser.evaluate<Page>(PAGE);
      expect(wide).toBeLessThanOrEqual(look.width);
      expect(rows).toHaveLength(8);
      expect(rows[3]).toMatch(/Services here.*2 of 5/s);
      expect(scripts).toBe(0);
      if (!PICTURES) expect(text).toContain(HOSTILE.replace('\u001b', '\\u001b'));
      const isDark = /\d+/g.exec(ground)![0] !== '255';
      expect(isDark).toBe(look.scheme === 'dark');
      expect(await browser.evaluate<string[]>(FAINT)).toEqual([]);
      expect(browser.complaints).toEqual([]);
      if (PICTURES) writeFileSync(join(PICTURES, `status-${look.width}-${look.scheme}.png`), await browser.picture());
    },
    LONG_MS,
  );

  it(
    'is searched without a script',
    async () => {
      await browser.open(`${PAGE_URL}?q=10.96.0.10`, LOOKS[0]!);
      const names = await browser.evaluate<string[]>(
        '[...document.querySelectorAll("summary")].map((one) => one.children[1].textContent)',
      );
      expect(names).toEqual(['shop/web']);
      expect(await browser.evaluate<string>('document.querySelector("details").innerText')).toMatch(/not ready/);
    },
    LONG_MS,
  );

  it(
    'is shown to strangers at its own address alone',
    async () => {
      const far = `http://${lab.node.ip()}`;
      expect((await lab.pods[0]!.httpGet(`${far}:10300/status?format=json`)).status).toBe(200);
      await expect(lab.pods[0]!.httpGet(`${far}:10249/status`)).rejects.toThrow();
    },
    LONG_MS,
  );
});

interface Page {
  readonly wide: number;
  readonly rows: readonly string[];
  readonly scripts: number;
  readonly text: string;
  readonly ground: string;
}

const PAGE = `({
  wide: document.documentElement.scrollWidth,
  rows: [...document.querySelectorAll('.questions tr')].map((row) => row.innerText),
  scripts: document.scripts.length,
  text: document.body.innerText,
  ground: getComputedStyle(document.body).backgroundColor,
})`;

/** The texts whose contrast to the ground is below 4.5 (WCAG 2.1), by colours as the browser computed them. */
const FAINT = `(() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = (colour) => numbers(colour)
    .map((value) => value / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    .reduce((sum, value, i) => sum + value * [0.2126, 0.7152, 0.0722][i], 0);
  const groundOf = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const { backgroundColor } = getComputedStyle(one);
      if (backgroundColor !== 'rgba(0, 0, 0, 0)') return backgroundColor;
    }
    return 'rgb(255, 255, 255)';
  };
  const faint = [];
  for (const element of document.body.querySelectorAll('*')) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || element instanceof SVGElement) continue;
    const [a, b] = [light(getComputedStyle(element).color), light(groundOf(element))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) faint.push(element.outerHTML.slice(0, 100));
  }
  return faint;
})()`;
