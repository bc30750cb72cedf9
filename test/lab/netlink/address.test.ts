import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { formatIp, isExists, isNotFound, parseAddressWithPrefix } from '../../../src/core/index.ts';
import type { Netlink } from '../../../src/netlink/index.ts';
import {
  type AddressSpec,
  deleteAddress,
  getLink,
  listAddresses,
  newAddress,
  newBridge,
  setLink,
} from '../../../src/netlink/route/index.ts';
import { IFA_F_NODAD, IFA_F_PERMANENT, IFA_F_TENTATIVE } from '../../../src/netlink/uapi/index.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { mac, openIn, witness } from './witness.ts';

let node: TestNamespace;
let netlink: Netlink;
let index: number;

beforeAll(() => {
  node = createNamespace('address');
  netlink = openIn(node);
  netlink.execute(setLink(1, { up: true }), newBridge({ name: 'cni0', mac: mac(1).bytes, up: true }));
  index = getLink(netlink, { name: 'cni0' })!.index;
});

beforeEach(() => {
  node.run('ip', 'addr', 'flush', 'dev', 'cni0');
});

afterAll(() => {
  netlink.close();
  removeAll();
});

const spec = (text: string, options: Partial<AddressSpec> = {}): AddressSpec => ({
  index,
  ...parseAddressWithPrefix(text),
  ...options,
});

const listed = () => listAddresses(netlink, { index }).map((a) => `${formatIp(a.address)}/${a.prefixLength}`);
const seen = (): Record<string, unknown>[] => witness(node, 'ip', 'addr', 'show', 'cni0')[0].addr_info;

describe('addresses', () => {
  it('of both families are added in one datagram and seen by iproute2', () => {
    netlink.execute(newAddress(spec('10.1.0.1/16')), newAddress(spec('fd00::1/64')), newAddress(spec('10.9.0.1/32')));
    expect(seen()).toEqual([
      expect.objectContaining({ local: '10.1.0.1', prefixlen: 16, broadcast: '10.1.255.255', scope: 'global' }),
      expect.objectContaining({ local: '10.9.0.1', prefixlen: 32 }),
      expect.objectContaining({ local: 'fd00::1', prefixlen: 64, scope: 'global', nodad: true }),
    ]);
    const [first, , third] = listAddresses(netlink, { index });
    expect(first).toMatchObject({ index, prefixLength: 16, label: 'cni0', peer: undefined, flags: IFA_F_PERMANENT });
    // Usable at once, because there is no duplicate address detection to wait for.
    expect(third).toMatchObject({ prefixLength: 64, flags: IFA_F_PERMANENT | IFA_F_NODAD });
    expect(third!.flags & IFA_F_TENTATIVE).toBe(0);
  });

  it('that are there already are refused, or replaced on demand', () => {
    netlink.execute(newAddress(spec('10.1.0.1/16')), newAddress(spec('fd00::1/64')));
    for (const text of ['10.1.0.1/16', 'fd00::1/64']) {
      let caught: unknown;
      try {
        netlink.execute(newAddress(spec(text)));
      } catch (error) {
        caught = error;
      }
      expect(isExists(caught)).toBe(true);
      expect(String(caught)).toContain(`RTM_NEWADDR ${text} on link ${index}`);
      netlink.execute(newAddress(spec(text, { replace: true })));
    }
    expect(listed()).toEqual(['10.1.0.1/16', 'fd00::1/64']);
  });

  it('are deleted, and not found twice', () => {
    netlink.execute(newAddress(spec('10.1.0.1/16')), newAddress(spec('fd00::1/64')));
    for (const text of ['10.1.0.1/16', 'fd00::1/64']) {
      netlink.execute(deleteAddress(spec(text)));
      expect(() => netlink.execute(deleteAddress(spec(text)))).toThrow(expect.toSatisfy(isNotFound));
    }
    expect(seen()).toEqual([]);
  });

  it('are listed by link and by family', () => {
    netlink.execute(newAddress(spec('10.1.0.1/16')), newAddress(spec('fd00::1/64')));
    const all = (filter: object) =>
      listAddresses(netlink, filter)
        .map((a) => formatIp(a.address))
        .sort();
    expect(all({})).toEqual(['10.1.0.1', '127.0.0.1', '::1', 'fd00::1']);
    expect(all({ family: 'IPv4' })).toEqual(['10.1.0.1', '127.0.0.1']);
    expect(all({ family: 'IPv6', index: 1 })).toEqual(['::1']);
    expect(all({ index })).toEqual(['10.1.0.1', 'fd00::1']);
  });

  it('in thousands go out in one datagram and come back in many', () => {
    const texts = Array.from({ length: 2000 }, (_, i) => `10.${100 + (i >> 8)}.${i & 0xff}.1/32`);
    netlink.execute(...texts.map((text) => newAddress(spec(text))));
    expect(listed()).toEqual(texts);
    expect(seen()).toHaveLength(2000);
  });
});
