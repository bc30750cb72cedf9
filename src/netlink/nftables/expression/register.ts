/**
 * One of the sixteen 4-byte registers, 0 to 15 (NFT_REG32_00 to NFT_REG32_15). A longer value begins at its register and
 * covers the next ones; a concatenation is its fields in consecutive registers, each padded to 4 bytes: IPv4 address in 0,
 * protocol in 1, port in 2; IPv6 address in 0 to 3, protocol in 4, port in 5.
 */
export type Register = number;
