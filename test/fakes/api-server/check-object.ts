import { isMapping } from '../../../src/core/index.ts';
import { type ApiObject, resourceOfKind } from './api-object.ts';
import { customResourceProblems } from './custom-resource.ts';
import { Refusal } from './status.ts';

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/**
 * The rules of the API that a client of ours may break: the name of any object, the numbers of a Lease, and everything
 * about the kinds that deploy/crds defines. Of other fields nothing is checked.
 *
 * @param live the object before the write; undefined: it is created
 * @throws Refusal 422
 */
export function checkObject(object: ApiObject, live?: ApiObject): void {
  const problems: string[] = [];
  const { name } = object.metadata;
  if (typeof name !== 'string' || name === '')
    problems.push('metadata.name: Required value: name or generateName is required');
  else if (!SUBDOMAIN.test(name)) {
    problems.push(
      `metadata.name: Invalid value: "${name}": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'`,
    );
  }
  if (object.kind === 'Lease') problems.push(...leaseProblems(object.spec));
  problems.push(...customResourceProblems(object.kind, object, live));
  if (problems.length === 0) return;
  const { kind, group } = resourceOfKind(object.kind);
  const list = problems.length > 1 ? `[${problems.join(', ')}]` : problems.join('');
  throw new Refusal(422, `${group === '' ? kind : `${kind}.${group}`} "${name}" is invalid: ${list}`);
}

function leaseProblems(spec: unknown): readonly string[] {
  const { leaseDurationSeconds: seconds, leaseTransitions: transitions } = isMapping(spec) ? spec : {};
  const problems: string[] = [];
  if (typeof seconds === 'number' && seconds <= 0) {
    problems.push(`spec.leaseDurationSeconds: Invalid value: ${seconds}: must be greater than 0`);
  }
  if (typeof transitions === 'number' && transitions < 0) {
    problems.push(`spec.leaseTransitions: Invalid value: ${transitions}: must be greater than or equal to 0`);
  }
  return problems;
}
