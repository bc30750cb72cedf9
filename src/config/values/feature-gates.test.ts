import { describe, expect, it } from 'vitest';
import { isEnabled, resolveFeatureGates } from './feature-gates.ts';
import { KNOWN_GATES } from './known-gates.ts';

function resolve(set: Record<string, boolean>) {
  const problems: string[] = [];
  return { gates: resolveFeatureGates(set, (message) => problems.push(message)), problems };
}

describe('resolveFeatureGates', () => {
  it.each([
    ['AllowServiceExternalIPs', '', true],
    ['MultiCIDRServiceAllocator', '', true],
    ['PreferSameTrafficDistribution', '', true],
    ['NFTablesProxyMode', '', true],
    ['ComponentFlagz', 'BETA', true],
    ['ComponentStatusz', 'BETA', true],
    ['NativeHistograms', 'ALPHA', false],
    ['ContextualLogging', 'BETA', true],
    ['LoggingAlphaOptions', 'ALPHA', false],
    ['LoggingBetaOptions', 'BETA', true],
    ['AllAlpha', 'ALPHA', false],
    ['AllBeta', 'BETA', false],
    ['KMSv1', 'DEPRECATED', false],
  ])('has %s (%s) at %s', (name, stage, enabled) => {
    expect(resolve({}).gates.get(name)).toEqual({ stage, enabled });
  });

  it('knows all gates of the release, each once', () => {
    expect(KNOWN_GATES.size).toBe(245);
  });

  it('sets gates by name', () => {
    const { gates, problems } = resolve({ AllowServiceExternalIPs: false, NativeHistograms: true });
    expect(isEnabled(gates, 'AllowServiceExternalIPs')).toBe(false);
    expect(isEnabled(gates, 'NativeHistograms')).toBe(true);
    expect(problems).toEqual([]);
  });

  it('sets a whole stage, but not the gates that are set themselves', () => {
    const { gates } = resolve({ AllAlpha: true, AllBeta: false, NativeHistograms: false, ComponentStatusz: true });
    const on = (name: string) => isEnabled(gates, name);
    expect(on('LoggingAlphaOptions')).toBe(true);
    expect(on('NativeHistograms')).toBe(false);
    expect(on('ComponentFlagz')).toBe(false);
    expect(on('ComponentStatusz')).toBe(true);
    expect(on('NFTablesProxyMode')).toBe(true);
    expect([on('AllAlpha'), on('AllBeta')]).toEqual([true, false]);
  });

  it('refuses unknown and locked gates', () => {
    expect(resolve({ NoSuchGate: true, NFTablesProxyMode: false, MultiCIDRServiceAllocator: true }).problems).toEqual([
      'unrecognized feature gate "NoSuchGate": leave it out',
      'cannot set feature gate "NFTablesProxyMode" to false, it is locked to true: leave it out',
    ]);
  });
});
