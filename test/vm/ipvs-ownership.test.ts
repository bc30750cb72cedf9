import { testOwnership } from '../dataplane/ownership.ts';

testOwnership('ipvs');
