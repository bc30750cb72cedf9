import { type HttpAnswer, type HttpRequest, textAnswer } from './http-listener.ts';

/** Answers clients on this machine, wherever the server listens, and refuses all others. */
export function toLocal(
  { remoteAddress = '' }: HttpRequest,
  answer: () => HttpAnswer | Promise<HttpAnswer>,
): HttpAnswer | Promise<HttpAnswer> {
  // An IPv4 client of a socket for both families appears as ::ffff:127.0.0.1.
  const local = remoteAddress === '::1' || /^(::ffff:)?127\./.test(remoteAddress);
  return local ? answer() : textAnswer(403, 'This page is shown to clients on this machine only\n');
}
