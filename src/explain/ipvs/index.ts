export { type IpvsReader, IpvsServers } from './ipvs-servers.ts';
