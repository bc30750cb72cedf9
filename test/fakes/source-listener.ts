import { type KubeObject, type ObjectHandler, objectKey, type SourceProblem } from '../../src/kube/index.ts';

/** Everything a source told, as short texts, and the objects it adds up to. */
export class SourceListener implements ObjectHandler {
  readonly told: string[] = [];
  readonly objects = new Map<string, KubeObject>();
  present: readonly SourceProblem[] = [];

  event({ type, object }: Parameters<ObjectHandler['event']>[0]): void {
    const port = object.kind === 'Service' ? object.spec.ports?.[0]?.port : undefined;
    this.told.push(`${type} ${object.metadata.name}${port === undefined ? '' : `:${port}`}`);
    if (type === 'deleted') this.objects.delete(objectKey(object));
    else this.objects.set(objectKey(object), object);
  }

  synced(): void {
    this.told.push('synced');
  }

  problems(problems: readonly SourceProblem[]): void {
    this.present = problems;
    this.told.push(`problems ${problems.map(({ where }) => where).join(' ')}`.trim());
  }

  /** What was told since the last call. */
  take(): string[] {
    return this.told.splice(0);
  }
}
