import { describe, expect, it } from 'vitest';
import { attachmentKey } from '../../protocol/attachment-key.ts';
import type { ContainerId, InterfaceName, NetworkName } from '../../protocol/environment.ts';
import { describeOwner, isOwnedBy, isStale, ownerComment } from './owner-comment.ts';

const key = (network: string, containerId = 'c1') =>
  attachmentKey(network as NetworkName, { containerId: containerId as ContainerId, ifname: 'eth0' as InterfaceName });

describe('the comment of an element', () => {
  it('names the attachment and belongs to it alone', () => {
    const comment = ownerComment(key('net'));
    expect(comment).toMatch(/^veth[0-9a-f]{11} net\/c1\/eth0$/);
    expect(isOwnedBy(comment, key('net'))).toBe(true);
    expect(isOwnedBy(comment, key('net', 'c2'))).toBe(false);
    expect(isOwnedBy(undefined, key('net'))).toBe(false);
    expect(describeOwner(comment)).toBe('attachment "net/c1/eth0"');
    expect(describeOwner('')).toBe('somebody else');
    expect(describeOwner('by hand')).toBe('somebody else ("by hand")');
  });

  it('fits the kernel and still names the link when names are long', () => {
    const long = key('n'.repeat(200), 'c'.repeat(64));
    expect(Buffer.byteLength(ownerComment(long))).toBe(127);
    expect(isOwnedBy(ownerComment(long), long)).toBe(true);
  });

  it('is stale when its network has no such attachment any more', () => {
    const comment = ownerComment(key('net'));
    expect(isStale(comment, 'net', [])).toBe(true);
    expect(isStale(comment, 'net', [key('net', 'c2')])).toBe(true);
    expect(isStale(comment, 'net', [key('net', 'c2'), key('net')])).toBe(false);
    expect(isStale(comment, 'ne', [])).toBe(false);
    expect(isStale(ownerComment(key('network')), 'net', [])).toBe(false);
    expect(isStale('net/c1/eth0', 'net', [])).toBe(false);
    expect(isStale(undefined, 'net', [])).toBe(false);
  });
});
