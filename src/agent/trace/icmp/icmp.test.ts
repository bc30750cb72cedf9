import { describe, expect, it } from 'vitest';
import { ASKED, ends, event, headers, pass, SYN, THERE, TUPLE, told } from '../../../../test/fakes/trace-events.ts';
import { FlowBook } from '../flow-book.ts';

describe('a flow that ICMP refuses', () => {
  const UDP = 17;
  /** The kernel copies 20 bytes behind the network header: too little to tell which packet it is about. */
  const icmp = (id: number, [from, to]: [string, string], type: number, code: number, numbered: boolean) => {
    const { networkHeader, transportHeader } = headers(ends(from, (type << 8) | code, to, 0), 0);
    networkHeader[9] = 1;
    const connection = numbered ? { id: 77, direction: 'reply' as const } : undefined;
    return [
      event(id, 'tracked-prerouting', { networkHeader, transportHeader, iif: 5, connection }),
      event(id, 'late-postrouting', { connection }),
    ];
  };
  const toUdp = (numbered: boolean) =>
    pass(1, [ASKED, THERE], SYN, numbered).map((one) => {
      one.networkHeader?.set([UDP], 9);
      return one;
    });
  const bookOfUdp = () => new FlowBook([{ ...TUPLE, protocol: UDP }]);

  it.each([
    ['by the connection’s number', true],
    ['by its client', false],
  ])('is refused, %s', (_, numbered) => {
    const book = bookOfUdp();
    for (const one of toUdp(numbered)) book.packet(one, 10);
    for (const one of icmp(2, ['10.244.1.9', '10.244.1.7'], 3, 3, numbered)) book.packet(one, 12);
    const { report, text } = told(book);
    expect(report).toMatchObject({ verdict: 'fails', flows: [{ fate: 'refused', answeredAfterMs: 2 }] });
    expect(text).toContain('; refused with ICMP port-unreachable from 10.244.1.9 after 2 ms\n');
  });

  it('is not, where it is told of a smaller size, or somebody else is told', () => {
    const book = bookOfUdp();
    for (const one of toUdp(false)) book.packet(one, 10);
    for (const one of icmp(2, ['10.244.1.9', '10.244.1.7'], 3, 4, false)) book.packet(one, 12);
    for (const one of icmp(3, ['10.244.1.9', '10.244.1.8'], 3, 3, false)) book.packet(one, 12);
    expect(told(book).report.flows).toMatchObject([{ fate: 'no-reply' }]);
  });

  it('is dropped where a rule of this node sends that', () => {
    const book = new FlowBook([TUPLE]);
    book.packet(event(1, 'early-prerouting', { ...headers(ASKED, SYN) }), 10);
    book.packet(event(1, 'gate', { table: 'fence', type: 'rule', handle: 7, verdict: 'drop' }), 10);
    for (const one of icmp(2, ['10.96.0.12', '10.244.1.7'], 3, 3, false)) book.packet(one, 12);
    expect(told(book).report.flows).toMatchObject([{ fate: 'dropped', drop: { table: 'fence', handle: 7 } }]);
  });
});
