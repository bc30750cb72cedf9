import { NodeplaneError } from '../../../core/index.ts';

/** What is not an event: what follows cannot be trusted either. */
export class GarbageError extends NodeplaneError {
  /** @param found what is there instead: a line of JSON, or what is wrong with a frame of protobuf */
  constructor(found: string) {
    super('ERR_API', `Cannot read the API server's watch: expected an event, found ${found}`);
    this.name = 'GarbageError';
  }
}
