import { inSlices } from '../../core/index.ts';
import {
  type Knowledge,
  type KnowledgeSources,
  parseQuestion,
  tellKnowledge,
  type WrittenQuestion,
} from '../../explain/index.ts';
import { type ObjectEvent, ObjectsOf } from '../../kube/index.ts';
import { isForProxy, zoneOf } from '../../proxy/index.ts';
import type { Evidence } from '../evidence/index.ts';
import type { Part, PartContext } from '../part.ts';
import type { ServicesPart } from '../services/services-part.ts';
import type { StatusRecorder } from '../status/collect/recorder.ts';
import { explainPages } from './explain-page.ts';
import { tellSeen } from './tell-seen.ts';

export interface ExplainPartOptions {
  readonly context: PartContext;
  readonly services: ServicesPart;
  readonly recorder: StatusRecorder;
  readonly evidence: Evidence;
  readonly commands: Knowledge['commands'];
}

/** Tells `nodeplane explain` what the agent knows: objects, plan, and how writing it went. It reads nothing and writes nothing. */
export class ExplainPart implements Part {
  readonly #options: ExplainPartOptions;
  readonly controlPages = explainPages((question) => this.#tell(question));
  /** Services of others. An API server does not tell them; a directory of manifests does. */
  readonly #notServed: ObjectsOf<'Service'>;

  constructor(options: ExplainPartOptions) {
    this.#options = options;
    const { config } = options.context;
    this.#notServed = new ObjectsOf('Service', (service) => !isForProxy(service, config.serviceProxyName));
  }

  start(): void {}

  stop(): void {}

  changed(event: ObjectEvent): void {
    this.#notServed.apply(event);
  }

  async #tell(question: WrittenQuestion): Promise<Knowledge> {
    return inSlices(tellKnowledge(this.#sources(), parseQuestion(question)));
  }

  #sources(): KnowledgeSources {
    const { context, services, recorder, evidence, commands } = this.#options;
    const { status, routes, explain, diff, ipamCheck } = commands;
    const { config, clock } = context;
    const age = (at: number) => Math.max(0, clock.now() - at) / 1000;
    return {
      nodeName: config.nodeName,
      zone: zoneOf(services.objects.node(config.nodeName)),
      mode: config.mode,
      live: true,
      routes: config.routes !== undefined,
      store: services.objects,
      families: services.planned().map(({ family, node, ports, explain, isUnwritten }) => {
        const record = recorder.families.find((one) => one.family === family);
        const { failing, written, drift = [], leftOut = new Map(), problems } = record ?? {};
        return {
          family,
          node,
          ports,
          explain,
          // Of syncs that fail it is told by itself.
          isUnwritten: (name) => !failing && isUnwritten(name),
          writtenSecondsAgo: written ? age(written.at) : null,
          failing: failing ? { seconds: age(failing.since), reason: failing.reason } : null,
          drift,
          leftOut,
          problems: (name) => problems?.get(name) ?? [],
        };
      }),
      commands: { status, routes, explain, diff, ipamCheck },
      trackingBefore: evidence.countersBefore(),
      seen: tellSeen(evidence, age),
      notServed: (name) => {
        const service = this.#notServed.get(name);
        if (!service) return undefined;
        if (service.spec.clusterIP === 'None')
          return 'it is headless (clusterIP: None): its name leads to the pods themselves';
        return 'its label service.kubernetes.io/service-proxy-name gives it to another proxy';
      },
      changedSecondsAgo: (name) => {
        const at = recorder.lastChangeOf(name);
        return at === undefined ? null : age(at);
      },
    };
  }
}
