import { writeFileSync } from 'node:fs';

/**
 * Tells suite.mjs which files should run once more: those that failed, and those whose process did not come up within the minute that
 * vitest gives it. `otherErrors` counts what belongs to no file.
 */
export default class SuiteReporter {
  onTestRunEnd(modules, errors) {
    const failed = modules.filter((module) => !module.ok()).map(({ moduleId }) => moduleId);
    const notBegun = errors.map(
      ({ message }) => /Failed to start \w+ worker for test files (.*)\.$/m.exec(message)?.[1],
    );
    const files = [...new Set([...failed, ...notBegun.flatMap((names) => names?.split(', ') ?? [])])];
    const otherErrors = notBegun.filter((names) => names === undefined).length;
    writeFileSync(process.env.NODEPLANE_SUITE_REPORT, JSON.stringify({ files, otherErrors }));
  }
}
