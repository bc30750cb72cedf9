import { type GateStage, KNOWN_GATES } from './known-gates.ts';

/** A gate as it is in force. */
export interface FeatureGate {
  readonly stage: GateStage;
  readonly enabled: boolean;
}

/** Every known gate by name: what the metric kubernetes_feature_enabled shows. */
export type FeatureGates = ReadonlyMap<string, FeatureGate>;

/** Gates that concern kube-proxy and can no longer be switched: what they guarded is always there. */
const LOCKED_ON: ReadonlySet<string> = new Set([
  'MultiCIDRServiceAllocator',
  'PreferSameTrafficDistribution',
  'NFTablesProxyMode',
]);

/** These two stand for all gates of their stage that are not set themselves. */
const STAGE_GATES: ReadonlyMap<string, GateStage> = new Map([
  ['AllAlpha', 'ALPHA'],
  ['AllBeta', 'BETA'],
]);

/**
 * The gates in force when these are set.
 *
 * @param problem called with a sentence for each gate that does not exist or cannot be set so
 */
export function resolveFeatureGates(
  set: Readonly<Record<string, boolean>>,
  problem: (message: string) => void,
): FeatureGates {
  for (const [name, enabled] of Object.entries(set)) {
    if (!KNOWN_GATES.has(name)) problem(`unrecognized feature gate "${name}": leave it out`);
    if (LOCKED_ON.has(name) && !enabled)
      problem(`cannot set feature gate "${name}" to false, it is locked to true: leave it out`);
  }
  const byStage = new Map<GateStage, boolean>();
  for (const [name, stage] of STAGE_GATES) {
    if (Object.hasOwn(set, name)) byStage.set(stage, set[name]!);
  }
  return new Map(
    [...KNOWN_GATES].map(([name, { stage, on }]) => {
      const enabled = Object.hasOwn(set, name) ? set[name]! : (wholeStage(name, stage, byStage) ?? on);
      return [name, { stage, enabled }];
    }),
  );
}

function wholeStage(name: string, stage: GateStage, byStage: ReadonlyMap<GateStage, boolean>): boolean | undefined {
  // The two have a stage themselves, but neither switches the other.
  return STAGE_GATES.has(name) ? undefined : byStage.get(stage);
}

/** Whether a gate is on. The name must be one of this release. */
export function isEnabled(gates: FeatureGates, name: string): boolean {
  return gates.get(name)!.enabled;
}
