import type { KubeProxyConfig } from '../../config/index.ts';
import type { ObjectEvent, SourceProblem } from '../../kube/index.ts';
import { portsFromHere } from '../http/agent-servers.ts';
import type { Pages } from '../http/http-server.ts';
import type { Part } from '../part.ts';
import { collectStatus, type StatusSources } from './collect/collect.ts';
import type { StatusRecorder } from './collect/recorder.ts';
import { type AgentWays, type OwnCommands, ownCommands } from './own-commands.ts';
import { StatusPage } from './status-page.ts';

interface StatusOptions
  extends Omit<StatusSources, 'node' | 'mode' | 'manifests' | 'ports' | 'commands' | 'began'>,
    Pick<AgentWays, 'argv'> {
  readonly config: KubeProxyConfig;
}

/** Tells how the node stands, to whoever asks. Until then it remembers a little of what happens. */
export class StatusPart implements Part {
  /** For clients on this machine. */
  readonly pages: Pages;
  /** For everybody who reaches the address of --status-bind-address. */
  readonly openPages: Pages;
  readonly commands: OwnCommands;
  readonly #recorder: StatusRecorder;

  constructor({ config, argv, ...sources }: StatusOptions) {
    const { clock, recorder } = sources;
    const { nodeName: node, mode, manifests, agentLockDir: lockDir } = config;
    const ports = portsFromHere(config);
    const commands = ownCommands({ metrics: ports.metrics, lockDir, argv });
    const all: StatusSources = { ...sources, node, mode, manifests, ports, commands, began: clock.now() };
    const page = new StatusPage((view) => collectStatus(all, view), commands);
    this.pages = page.local;
    this.openPages = page.open;
    this.commands = commands;
    this.#recorder = recorder;
  }

  start(): void {}

  stop(): void {}

  changed(event: ObjectEvent): void {
    this.#recorder.objectChanged(event);
  }

  synced(): void {
    this.#recorder.begin();
  }

  /** Takes in which objects cannot be read now. */
  objectProblems(problems: readonly SourceProblem[]): void {
    this.#recorder.setObjectProblems(problems);
  }
}
