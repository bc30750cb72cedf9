export { type IpvsReader, IpvsServers } from './ipvs-servers.ts';
export { reroutesAnswers } from './reroute.ts';
