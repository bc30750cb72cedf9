import { describe, expect, it } from 'vitest';
import { formatCidr, parseAddressWithPrefix } from '../../core/index.ts';
import type { InterfaceName } from '../protocol/environment.ts';
import { planBridge } from './bridge-plan.ts';

const cidrs = (texts: readonly string[]) => texts.map(parseAddressWithPrefix);

function plan(
  addresses: readonly string[] | undefined,
  gateways: readonly string[],
  options: Partial<{
    kind: string;
    up: boolean;
    flags: number;
    vlanFiltering: boolean;
    configured: readonly string[];
    forceAddress: boolean;
    wants: { promiscuous?: boolean; vlanFiltering?: boolean };
  }> = {},
) {
  const { kind = 'bridge', up = true, flags = 0, vlanFiltering = false } = options;
  const { configured = gateways, forceAddress = false, wants = {} } = options;
  const result = planBridge(
    { link: addresses && { kind, up, flags, vlanFiltering }, addresses: cidrs(addresses ?? []) },
    {
      name: 'cni0' as InterfaceName,
      gateways: cidrs(gateways),
      configured: cidrs(configured),
      forceAddress,
      promiscuous: false,
      vlanFiltering: false,
      ...wants,
    },
  );
  return { ...result, add: result.add.map(formatCidr), remove: result.remove.map(formatCidr) };
}

describe('planBridge', () => {
  it('makes what is not there', () => {
    expect(plan(undefined, ['10.0.0.1/24', 'fd00::1/64'])).toEqual({
      setUp: false,
      setPromiscuous: false,
      setVlanFiltering: false,
      remove: [],
      add: ['10.0.0.1/24', 'fd00::1/64'],
    });
  });

  it('leaves alone what is as it should be, other IPv6 addresses included', () => {
    const present = ['10.0.0.1/24', 'fd00::1/64', 'fe80::1/64', '2001:db8::1/64'];
    expect(plan(present, ['10.0.0.1/24', 'fd00::1/64'])).toEqual({
      setUp: false,
      setPromiscuous: false,
      setVlanFiltering: false,
      remove: [],
      add: [],
    });
  });

  it('adds the family that is missing, and sets up a bridge that is down', () => {
    expect(plan(['10.0.0.1/24'], ['10.0.0.1/24', 'fd00::1/64'], { up: false })).toMatchObject({
      setUp: true,
      add: ['fd00::1/64'],
    });
  });

  it('switches on what a network needs, and never off what another one may need', () => {
    const wants = { promiscuous: true, vlanFiltering: true };
    expect(plan([], [], { wants })).toMatchObject({ setPromiscuous: true, setVlanFiltering: true });
    // A new bridge is made to look at VLANs.
    expect(plan(undefined, [], { wants })).toMatchObject({ setPromiscuous: true, setVlanFiltering: false });
    for (const done of [{ wants }, {}]) {
      expect(plan([], [], { ...done, flags: 0x100, vlanFiltering: true })).toMatchObject({
        setPromiscuous: false,
        setVlanFiltering: false,
      });
    }
  });

  it('takes the gateways of other ranges of the network for its own', () => {
    const configured = ['10.0.0.1/24', '10.0.9.1/24'];
    expect(plan(['10.0.9.1/24'], ['10.0.0.1/24'], { configured })).toMatchObject({ remove: [], add: ['10.0.0.1/24'] });
  });

  it('leaves the gateway of pods from before the range was widened beside the new one', () => {
    for (const [found, gateway] of [
      ['10.0.0.1/26', '10.0.0.1/24'],
      ['10.0.1.1/24', '10.0.0.1/20'],
      ['fd00:0:0:1::1/64', 'fd00::1/56'],
    ] as const) {
      expect(plan([found], [gateway])).toMatchObject({ remove: [], add: [gateway] });
    }
  });

  it('has no opinion about addresses when it is no gateway', () => {
    expect(plan(['192.168.0.1/24'], [])).toMatchObject({ remove: [], add: [] });
  });

  it.each<[string, string]>([
    ['10.9.9.1/24', '10.0.0.1/24'],
    ['10.0.0.1/16', '10.0.0.1/24'],
    ['fd00::1/48', 'fd00::1/64'],
    ['fd00::1/80', 'fd00::1/64'],
    ['fd00::9/64', 'fd00::1/64'],
  ])('refuses %s in the way of %s, or replaces it when told so', (found, gateway) => {
    expect(() => plan([found], [gateway])).toThrow(
      expect.objectContaining({
        cniCode: 106,
        message: `Bridge "cni0" has the address ${found} where the network needs ${gateway}; if its pods are gone, delete it (ip link delete cni0), or let "forceAddress": true replace the address`,
      }),
    );
    expect(plan([found], [gateway], { forceAddress: true })).toMatchObject({ remove: [found], add: [gateway] });
  });

  it.each([
    ['dummy', 'of kind "dummy"'],
    ['', 'a network device'],
  ])('refuses a link of kind "%s" that has the name', (kind, text) => {
    expect(() => plan([], [], { kind })).toThrow(
      `Link "cni0" exists and is no bridge but ${text}; remove it or choose another name by the key "bridge"`,
    );
  });
});
