/**
 * A session is renewed after two minutes and void after three (REJECT_AFTER_TIME,
 * https://www.wireguard.com/papers/wireguard.pdf, 6.1): whoever was heard of since then is there.
 */
export const SESSION_SECONDS = 180;
