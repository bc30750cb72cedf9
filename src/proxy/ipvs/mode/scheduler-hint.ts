import { IPVS_SCHEDULER_ANNOTATION } from '../../../kube/index.ts';
import type { ServiceHint } from '../../index.ts';

/** The scheduler a Service asks for. Whether there is such a one only the kernel knows: it has to be a word with words of flags. */
export const SCHEDULER_HINT: ServiceHint = {
  annotation: IPVS_SCHEDULER_ANNOTATION,
  whyNot: (text) =>
    /^[a-z0-9]{1,15}(,[a-z-]+)*$/.test(text) ? undefined : "which is no scheduler; the node's is used",
};
