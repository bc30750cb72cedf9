import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { formatCidr } from '../../core/index.ts';
import { type ExcludedCidrsFlags, excludedCidrs } from './excluded-cidrs.ts';

const folder = mkdtempSync(join(tmpdir(), 'nodeplane-excluded-'));
afterAll(() => rmSync(folder, { recursive: true }));

const HEAD = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n';

function fileWith(text: string): string {
  const path = join(folder, 'config.yaml');
  writeFileSync(path, HEAD + text);
  return path;
}

const excluded = (flags: ExcludedCidrsFlags) => excludedCidrs(flags).map(formatCidr);

it('come from flag and file', () => {
  expect(excluded({})).toEqual([]);
  expect(excluded({ ipvsExcludeCidrs: '10.1.0.0/16, fd00::/64' })).toEqual(['10.1.0.0/16', 'fd00::/64']);
  // Whatever the mode: cleaning up concerns all of them.
  const config = fileWith('mode: iptables\nipvs: {excludeCIDRs: [10.2.0.0/16]}\n');
  expect(excluded({ config })).toEqual(['10.2.0.0/16']);
  expect(excluded({ config, ipvsExcludeCidrs: '10.1.0.0/16' })).toEqual(['10.1.0.0/16', '10.2.0.0/16']);
  expect(excluded({ config: fileWith('mode: ipvs\n') })).toEqual([]);
});

it('are refused where they cannot be read, rather than removed', () => {
  expect(() => excluded({ ipvsExcludeCidrs: '10.1.0.0' })).toThrow(
    expect.objectContaining({ code: 'ERR_ADDRESS_INVALID' }),
  );
  const wrong = [fileWith('mode: iptables\nipvs: {excludeCIDRs: [x]}\n'), 'ERR_ADDRESS_INVALID'] as const;
  expect(() => excluded({ config: wrong[0] })).toThrow(expect.objectContaining({ code: wrong[1] }));
  expect(() => excluded({ config: fileWith('mode: 3\n') })).toThrow(
    expect.objectContaining({ code: 'ERR_CONFIG', message: expect.stringContaining('mode: expected text, found 3') }),
  );
  expect(() => excluded({ config: '/none' })).toThrow(expect.objectContaining({ code: 'ERR_CONFIG' }));
});
