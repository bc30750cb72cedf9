import type { FoundOnNode } from './found.ts';
import type { MigrationNote } from './note.ts';

/** Where a node stands on its way to nodeplane. */
export type Standing =
  /** Others do the work; no rules of ours. */
  | 'not begun'
  /** Rules of both are here: on the way to us, or back. */
  | 'under way'
  /** Ours alone, and something else was here before. */
  | 'taken over'
  /** Ours alone, and nothing says that it ever was otherwise. */
  | 'nodeplane'
  /** The annotation says that ours took over, or that they left again, and they are gone. */
  | 'gone back'
  | 'nobody';

/** What to do next and how to get back, in words with the commands. */
export interface Advice {
  readonly standing: Standing;
  readonly next: readonly string[];
  readonly back: readonly string[];
}

const WAY_BACK = [
  'put the image (or the DaemonSet) of the other proxy back',
  'when it has synced on this node: nodeplane cleanup --leave-kube-proxy',
];

/** What the proxy of Services is at, by what is in the kernel; the note tells only what cannot be seen there. */
export function advise({ theirs, ours }: FoundOnNode, note: MigrationNote | undefined): Advice {
  const networks = theirs.filter(({ name }) => !name.startsWith('kube-proxy'));
  const proxies = theirs.filter(({ name }) => name.startsWith('kube-proxy'));
  const restOf = networks.flatMap(({ name }) => NETWORK_STEPS[name]?.next ?? []);
  const backOf = networks.flatMap(({ name }) => NETWORK_STEPS[name]?.back ?? []);
  if (ours.length === 0 && proxies.length > 0) {
    return {
      standing: note && note.step !== 'taking-over' ? 'gone back' : 'not begun',
      next: [
        'nodeplane preflight',
        'end the kube-proxy here (its rules stay), and start the agent: it takes them over when it knows all Services',
        ...restOf,
      ],
      back:
        note === undefined || note.step === 'gone-back'
          ? ['there is nothing to undo']
          : [
              'Services are with kube-proxy; remove what is ours and it does not know: nodeplane cleanup --leave-kube-proxy',
            ],
    };
  }
  if (ours.length > 0 && theirs.length > 0) {
    const forward =
      proxies.length > 0
        ? [
            'if a kube-proxy still runs here, end it: both write',
            'wait until the agent is ready (curl localhost:10256/livez), then look again; what is left of kube-proxy goes at the agent’s start',
          ]
        : [];
    return { standing: 'under way', next: [...forward, ...restOf], back: [...WAY_BACK, ...backOf] };
  }
  if (ours.length > 0) {
    return {
      standing: note ? 'taken over' : 'nodeplane',
      next: ['nothing: look at the next node when "nodeplane status" has no problems'],
      back: WAY_BACK,
    };
  }
  return {
    standing: 'nobody',
    next: ['nodeplane preflight', 'start the agent', ...restOf],
    back: note === undefined ? ['there is nothing to undo'] : ['start the other proxy: nothing of ours is in its way'],
  };
}

/** Of the networks of pods (docs/migration.md). */
const NETWORK_STEPS: Readonly<Record<string, { next: readonly string[]; back: readonly string[] }>> = {
  flannel: {
    next: ['flannel: with the agent running, delete its device (ip link delete flannel.1), then its rules'],
    back: ['flannel: stop the agent, nodeplane cleanup --routes, start flannel'],
  },
  portmap: {
    next: ['portmap: its rules go with the pods it made; with legacy iptables keep it in the list until then'],
    back: ['portmap: put the old conflist back, stop the agent, nodeplane cleanup --cni --force'],
  },
  ipMasq: {
    next: ['ipMasq: its rules go with the pods that the bridge plugin attached'],
    back: ['ipMasq: put the old conflist back, stop the agent, nodeplane cleanup --cni --force'],
  },
};
